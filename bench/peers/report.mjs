// The results as Markdown and as a chart.

import { barChart } from '../lib/bar-chart.mjs';
import { coresText, describeContention } from '../lib/contention.mjs';
import { markdownTable } from '../lib/markdown.mjs';
import { digits, summarise, withRange } from '../lib/statistics.mjs';
import { buildName, downloadSize } from './downloads.mjs';
import { PRECISIONS } from './entrants.mjs';
import { summary } from './results.mjs';

const TITLE = 'kvasm and its peers in one browser';
const VERDICTS = new Map([
  [true, 'yes'],
  [false, 'no'],
  [undefined, ''],
]);

const scaled = (values, unit) => {
  const [median, min, max] = [values.median, values.min, values.max].map(value => value / unit);
  return withRange({ median, min, max });
};
const othersUsed = ({ samples }) => coresText(samples.map(sample => sample.foreignCores));
const isEngine = entry => entry.samples[0].prefill !== undefined;
const label = ({ name, stored, threads }) => `${name} ${stored}, ${threads}`;

/** How much of two texts is alike from their beginning on. */
export function agreement(text, reference) {
  let same = 0;
  while (same < reference.length && text[same] === reference[same]) same++;
  return reference.length === 0 ? 1 : same / reference.length;
}

function engineTable(entries, reference) {
  return markdownTable(
    ['engine, weights, threads', 'decode, tokens/s', 'first token, ms', 'prefill, tokens/s'].concat(
      ['load, s', 'peak MB', 'same text as f32', 'others used'],
    ),
    entries.map(entry => [
      label(entry),
      withRange(summary(entry, 'decode')),
      withRange(summary(entry, 'firstToken')),
      withRange(summary(entry, 'prefill')),
      withRange(summary(entry, 'loadSeconds')),
      scaled(summary(entry, 'peakBytes'), 1e6),
      reference === undefined
        ? ''
        : `${Math.round(100 * agreement(entry.samples[0].text, reference))} %`,
      othersUsed(entry),
    ]),
  );
}

function enginesSection(results, precision, reference) {
  const entries = results.entries.filter(e => e.precision === precision && isEngine(e));
  if (entries.length === 0) return [];
  return [`## Weights of ${PRECISIONS[precision]}`, engineTable(entries, reference)];
}

function memorySection(results) {
  const loops = results.entries.filter(({ name }) => name === 'read-loop');
  if (loops.length === 0) return [];
  const rows = loops.map(loop => {
    const { precision, threads } = loop;
    const ours = results.find('kvasm', precision, threads);
    return [
      `${precision}, ${threads}`,
      scaled(summary(loop, 'bytes'), 1e6),
      scaled(summary(loop, 'bytesPerSecond'), 1e9),
      ours === undefined ? '' : scaled(summary(ours, 'bytesPerSecond'), 1e9),
      othersUsed(loop),
    ];
  });
  const head = ['weights, threads', 'MB', 'read loop, GB/s', 'kvasm decode, GB/s', 'others used'];
  return [
    '## Against the memory',
    'The read loop is WebAssembly that loads vectors from a buffer of the size of the weights, and adds them up.',
    markdownTable(head, rows),
  ];
}

function strategySection(results, tokens) {
  const entry = results.entries.find(({ name }) => name === 'strategies');
  if (entry === undefined) return [];
  const rows = ['block', 'concat', 'none'].map(cache => {
    const seconds = entry.samples.map(sample => sample.seconds[cache]).filter(Number.isFinite);
    return [
      cache,
      withRange(summarise(seconds)),
      withRange(summarise(seconds.map(s => tokens / s))),
    ];
  });
  return [
    `## Ways to keep keys and values: ${tokens} tokens, f32, threads: ${entry.threads}`,
    markdownTable(['cache', 'seconds', 'tokens/s'], rows),
    `Processors that others used: ${othersUsed(entry)}. Without a cache there is one round.`,
  ];
}

function torchSection(results) {
  const entries = results.entries.filter(({ name }) => name === 'torch');
  if (entries.length === 0) return [];
  return [
    '## PyTorch outside the browser',
    `A preallocated cache and matrix-vector products, float32, PyTorch ${entries[0].samples[0].version} with Debian's BLAS.`,
    markdownTable(
      ['threads', 'weights stored', 'decode, tokens/s', 'others used'],
      entries.map(entry => [
        String(entry.threads),
        [...new Set(entry.samples.map(({ layout }) => layout))].join(' or '),
        withRange(summary(entry, 'decode')),
        othersUsed(entry),
      ]),
    ),
  ];
}

function downloadSection(results) {
  const seen = new Map();
  for (const {
    name,
    samples: [{ files, facts }],
  } of results.entries.filter(isEngine)) {
    seen.set(
      `${name}, ${buildName(files) ?? facts.variant}`,
      downloadSize(files.filter(file => !file.includes('/bench/'))),
    );
  }
  if (seen.size === 0) return [];
  const rows = [...seen].map(([engine, { files, bytes, gzip, small }]) => [
    engine,
    String(files),
    digits(bytes / 1000),
    digits(gzip / 1000),
    digits(small / 1000),
  ]);
  return [
    '## Downloads, without the model',
    'Scripts and WebAssembly that the page has fetched, as they are published; each after gzip at level 9; and when the scripts are minified first.',
    markdownTable(['engine, build', 'files', 'KB', 'KB after gzip', 'with minified scripts'], rows),
  ];
}

const allForeignCores = results =>
  results.entries.flatMap(({ samples }) => samples.map(sample => sample.foreignCores));

function settingLines(results, facts, settings) {
  const builds = facts.builds.map(({ name, hash }) => `${name} ${hash}`).join(', ');
  const engines = new Map();
  for (const { name, samples } of results.entries.filter(isEngine)) {
    engines.set(name, samples[0].facts.settings);
  }
  return [
    `${facts.date}; commit ${facts.commit}; our builds and the starts of their SHA-256: ${builds}`,
    `${facts.cpu}; ${describeContention(allForeignCores(results))}`,
    facts.versions,
    `rounds in turns: ${settings.reps}, with fewer threads every other one; medians, with the range in brackets; ratios are taken within a round`,
    `a random model of the shape of GPT-2 ${settings.shape}, the same weights for all; each visit is a new page, with a warm-up that does not count`,
    `decode: ${settings.tokens} tokens, greedy, after a prompt of 4; prefill: the first token of a prompt of ${settings.prefill}; the same ids for all, and nothing kept from earlier prompts`,
    'times are what the page sees, but for the decode and prefill of wllama, which are by its own clock and leave its JavaScript out',
    "load: from importing the script to a ready model, from a server on the same machine; peak: memory of the page's process",
    ...[...engines].map(([name, text]) => `${name}: ${text}`),
  ];
}

/** @returns {string} the whole report as Markdown */
export function markdownReport(results, { targets, failures, facts, settings }) {
  const [first] = results.entries.filter(entry => isEngine(entry) && entry.precision === 'f32');
  const reference = first?.samples[0].text;
  const parts = [
    `# ${TITLE}`,
    'Written by `node bench/peers.mjs`.',
    settingLines(results, facts, settings)
      .map(line => `- ${line}`)
      .join('\n'),
    markdownTable(
      ['', 'target', 'measured', 'met'],
      targets.map(({ what, target, measured, met }) => [what, target, measured, VERDICTS.get(met)]),
    ),
    ...Object.keys(PRECISIONS).flatMap(precision => enginesSection(results, precision, reference)),
    ...memorySection(results),
    ...strategySection(results, settings.tokens),
    ...torchSection(results),
    ...downloadSection(results),
  ];
  if (failures.size > 0) {
    const list = [...failures].map(([key, message]) => `- ${key}: ${message.split('\n')[0]}`);
    parts.push('## Not measured', list.join('\n'));
  }
  return `${parts.join('\n\n')}\n`;
}

/** @returns {string} the rates as an SVG */
export function chart(results, { facts, settings }) {
  const bars = (precision, metric) =>
    results.entries
      .filter(entry => entry.precision === precision && isEngine(entry))
      .map(entry => ({
        label: label(entry),
        value: summary(entry, metric),
        isMuted: entry.name !== 'kvasm',
      }));
  const groups = [
    ['decode', `${settings.tokens} tokens after 4`],
    ['prefill', `a prompt of ${settings.prefill}`],
  ].flatMap(([metric, work]) =>
    Object.entries(PRECISIONS).map(([precision, name]) => ({
      title: `${metric}, weights of ${name}: tokens/s, ${work}`,
      bars: bars(precision, metric),
    })),
  );
  const notes = [
    `${facts.date}, commit ${facts.commit}, ${facts.versions}`,
    facts.cpu,
    `Medians of up to ${settings.reps} rounds, lines: range; the number after a name is of threads.`,
    `The machine was ${describeContention(allForeignCores(results))}.`,
  ];
  return barChart(
    `${TITLE} (${settings.shape} shape)`,
    groups.filter(g => g.bars.length > 0),
    notes,
  );
}
