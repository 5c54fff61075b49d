import type { CacheStrategy } from 'kvasm';
import type { App } from '../app.ts';
import { BarTable } from '../charts/bar-table.ts';
import { LineChart } from '../charts/line-chart.ts';
import { smooth } from '../charts/scale.ts';
import { formatMilliseconds } from '../lib/format.ts';
import { LessonFrame } from './lesson-frame.ts';
import { opening } from './texts.ts';

interface Lane {
  readonly strategy: CacheStrategy;
  readonly name: string;
  readonly colour: number;
  readonly milliseconds: number[];
  tokens: Int32Array | undefined;
}

// Hiccups of the machine are shorter than that.
const smoothing = 5;

/** A race of the three ways to have the keys and values of earlier tokens. */
export function whyCache(app: App): LessonFrame {
  const frame = new LessonFrame(app, {
    id: 'why-cache',
    title: 'Why a cache?',
    intro: [
      'To write a token, the model looks back at every token before it: at a key and a value that each layer has computed for it. These never change. So they can be kept, and that is the KV cache.',
      'Three ways to go about it run on the same prompt, one after the other: nothing is kept and all is computed anew for each token; a cache in one piece that is moved to a larger place at each token, as textbooks have it; and blocks in memory that was reserved once.',
    ],
  });
  const count = frame.select(
    'Tokens to write',
    ['32', '64', '128', '256'].map(n => [n, n]),
    '64',
  );
  const chart = new LineChart('Time for each token', { x: 'token', y: 'ms' });
  const totals = new BarTable('Time for all of them');
  frame.show(chart.element, totals.element);

  frame.onRun(
    () => ({ settings: {} }),
    async (engine, signal) => {
      const lanes: Lane[] = [
        lane('none', 'no cache', 1),
        lane('concat', 'one piece, moved', 2),
        lane('block', 'blocks', 0),
      ];
      const most = Number(count.value);
      const show = () => {
        chart.show(
          lanes.map(({ name, colour, milliseconds }) => ({
            name,
            colour,
            values: smooth(milliseconds, smoothing),
          })),
          most,
        );
        totals.show(
          lanes.map(one => {
            const total = totalOf(one);
            return {
              label: one.name,
              value: total,
              text: formatMilliseconds(total),
              colour: one.colour,
            };
          }),
        );
      };
      for (const one of lanes) {
        const run = engine.generate(opening, {
          cache: one.strategy,
          maxTokens: most,
          temperature: 0,
          stopTokens: [],
          reusePrefix: false,
          signal,
        });
        let before = performance.now();
        for await (const _ of run) {
          const now = performance.now();
          one.milliseconds.push(now - before);
          before = now;
          show();
        }
        one.tokens = (await run.result()).tokens;
      }
      chart.flush();
      return conclusionOf(lanes);
    },
  );
  return frame;
}

function lane(strategy: CacheStrategy, name: string, colour: number): Lane {
  return { strategy, name, colour, milliseconds: [], tokens: undefined };
}

function totalOf({ milliseconds }: Lane): number {
  return milliseconds.reduce((sum, value) => sum + value, 0);
}

function conclusionOf(lanes: readonly Lane[]): string {
  const [none, , block] = lanes;
  if (!none || !block) return '';
  const ratio = totalOf(none) / totalOf(block);
  const texts = new Set(lanes.map(({ tokens }) => tokens?.join()));
  const same =
    texts.size === 1
      ? 'All three wrote the same tokens: a cache changes the work, not the result.'
      : 'They did not write the same tokens, which must not be: please report it.';
  return `Without a cache, ${none.milliseconds.length} tokens took ${formatMilliseconds(totalOf(none))}; with blocks ${formatMilliseconds(totalOf(block))}, ${ratio.toFixed(1)} times less. ${same}`;
}
