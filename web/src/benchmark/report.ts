import { median } from '../charts/scale.ts';

/** One thing that is measured, and what came out in each round. */
export interface Measure {
  readonly name: string;
  readonly unit: 'tokens/s' | 'ms';
  readonly samples: readonly number[];
}

/** What a measurement was made on. */
export interface Setting {
  readonly model: string;
  readonly engine: string;
  readonly browser: string;
  readonly processors: number;
  readonly date: string;
}

export interface Summary {
  readonly median: number;
  readonly least: number;
  readonly most: number;
}

export function summarise(samples: readonly number[]): Summary {
  return { median: median(samples), least: Math.min(...samples), most: Math.max(...samples) };
}

/** Three digits, as more would not come out alike twice. */
export function formatNumber(value: number): string {
  if (value >= 100) return String(Math.round(value));
  return value.toFixed(value >= 10 ? 1 : 2);
}

/** A Markdown table below the lines that say what it was measured on. */
export function toMarkdown(measures: readonly Measure[], setting: Setting): string {
  const lines = [
    `- model: ${setting.model}`,
    `- kvasm: ${setting.engine}`,
    `- browser: ${setting.browser}; ${setting.processors} processors; ${setting.date}`,
    '',
    '| | median | range | unit |',
    '| --- | ---: | ---: | --- |',
  ];
  for (const { name, unit, samples } of measures) {
    if (samples.length === 0) continue;
    const { median, least, most } = summarise(samples);
    const range = `${formatNumber(least)} to ${formatNumber(most)}`;
    lines.push(`| ${name} | ${formatNumber(median)} | ${range} | ${unit} |`);
  }
  return `${lines.join('\n')}\n`;
}
