import type { App } from '../app.ts';
import { CacheWatch } from '../cache/cache-watch.ts';
import { LiveGrid } from '../cache/live-grid.ts';
import { BarTable } from '../charts/bar-table.ts';
import { formatMilliseconds } from '../lib/format.ts';
import { LessonFrame } from './lesson-frame.ts';
import { storyIds } from './texts.ts';

const decoded = 32;

/** The two phases of a run. */
export function prefillDecode(app: App): LessonFrame {
  const frame = new LessonFrame(app, {
    id: 'prefill-decode',
    title: 'Prefill and decode',
    intro: [
      'The tokens of a prompt are all known, so their keys and values are computed together, in passes of many tokens: that is prefill. It fills blocks by the handful. New tokens come one at a time, since each depends on the one before: that is decode. It fills one place at a time.',
      'Each pass reads all weights of the model once. A prefill pass shares that among its tokens, a decode pass has but one to show for it.',
    ],
  });
  const size = frame.select(
    'Prompt, in tokens',
    ['32', '128', '256'].map(n => [n, n]),
    '128',
  );
  const grid = new LiveGrid('Blocks while the run goes on');
  const bars = new BarTable('Time for one token');
  frame.show(bars.element, grid.element);

  frame.onRun(
    () => ({ settings: {} }),
    async (engine, signal) => {
      bars.show([]);
      await using recording = await engine.recordCache();
      const watch = new CacheWatch(engine, moment => grid.show(moment), recording);
      await watch.settle();
      const room = engine.info.contextLength - decoded;
      const prompt = await storyIds(engine, Math.max(Math.min(Number(size.value), room), 1));
      // Its blocks stay until they are shown.
      await using session = engine.session();
      const run = session.generate(prompt, {
        maxTokens: decoded,
        temperature: 0,
        stopTokens: [],
        reusePrefix: false,
        signal,
      });
      for await (const _ of run) watch.poll();
      const { timings, usage } = await run.result();
      await watch.settle();
      grid.flush();
      const each = {
        prefill: timings.prefill / usage.prompt,
        decode: timings.decode / Math.max(usage.completion - 1, 1),
      };
      bars.show([bar('prefill', each.prefill, 2), bar('decode', each.decode, 1)]);
      const ratio = each.decode / each.prefill;
      return `Prefill: ${usage.prompt} tokens in ${formatMilliseconds(timings.prefill)}. Decode: ${usage.completion - 1} tokens in ${formatMilliseconds(timings.decode)}. A token that comes alone took ${ratio.toFixed(1)} times as long as one of a prompt.`;
    },
  );
  return frame;
}

function bar(label: string, value: number, colour: number) {
  return { label, value, text: `${value.toFixed(2)} ms a token`, colour };
}
