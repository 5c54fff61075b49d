import type { KvDtype } from 'kvasm';
import type { App } from '../app.ts';
import { type Bar, BarTable } from '../charts/bar-table.ts';
import { make } from '../lib/dom.ts';
import { formatBytes, formatInteger } from '../lib/format.ts';
import type { ModelChoice } from '../model/model-picker.ts';
import { LessonFrame } from './lesson-frame.ts';
import { opening } from './texts.ts';

const dtypes: readonly KvDtype[] = ['f32', 'f16', 'q8'];

/** What makes a token's keys and values smaller, and what becomes of the text. */
export function smallerKeys(app: App): LessonFrame {
  const frame = new LessonFrame(app, {
    id: 'smaller',
    title: 'Smaller keys and values',
    intro: [
      'Two things make a token’s keys and values smaller. They can be stored with fewer bits: 16-bit floats, or 8-bit integers with a scale. And several heads can share one key and value: grouped-query attention (GQA), here with one key/value head for all, which is also called multi-query attention.',
      'Each variant is loaded in turn and writes on the same opening. The grouped model is the bundled one with the means of its key and value heads. Nobody has trained it since, so its text is no longer good; models that are made this way are trained on.',
    ],
  });
  const bars = new BarTable('Bytes that one token takes in the cache');
  const texts = make('dl', { class: 'variants' });
  frame.show(bars.element, texts);
  const pair = app.picker.groupedPair();

  frame.onSubmit(async () => {
    const shown: Bar[] = [];
    const found = new Map<string, string>();
    texts.replaceChildren();
    bars.show([]);
    const models: readonly (ModelChoice | undefined)[] = pair ?? [undefined];
    for (const [index, model] of models.entries()) {
      for (const kvDtype of dtypes) {
        const choice = model ? { model } : {};
        const ended = await frame.job(
          { settings: { kvDtype }, ...choice },
          async (engine, signal) => {
            const { nKvHead } = engine.info.config;
            const name = `${nKvHead} KV head${nKvHead === 1 ? '' : 's'}, ${kvDtype}`;
            const options = { maxTokens: 24, temperature: 0, signal };
            const { text } = await engine.generate(opening, options).result();
            const { perToken, reserved } = (await engine.memory()).kv;
            const label = `${formatInteger(perToken)} bytes, ${formatBytes(reserved)} for a full context`;
            shown.push({ label: name, value: perToken, text: label, colour: index === 0 ? 0 : 3 });
            bars.show(shown);
            found.set(name, text);
            texts.append(make('div', {}, make('dt', {}, name), make('dd', {}, `…${text}`)));
          },
        );
        if (!ended) return;
      }
    }
    frame.conclude(conclusionOf(shown, found));
  });
  return frame;
}

function conclusionOf(bars: readonly Bar[], texts: ReadonlyMap<string, string>): string {
  const [first] = bars;
  const least = bars.at(-1);
  if (!first || !least) return '';
  const ofFirst = bars.slice(0, dtypes.length).map(({ label }) => texts.get(label));
  const same =
    new Set(ofFirst).size === 1
      ? 'Fewer bits have not changed a token of this text.'
      : 'Fewer bits have changed this text.';
  return `From ${formatInteger(first.value)} to ${formatInteger(least.value)} bytes a token, ${(first.value / least.value).toFixed(1)} times less. ${same}`;
}
