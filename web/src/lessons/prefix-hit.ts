import type { Engine } from 'kvasm';
import type { App } from '../app.ts';
import { CacheWatch } from '../cache/cache-watch.ts';
import { LiveGrid } from '../cache/live-grid.ts';
import { type Bar, BarTable } from '../charts/bar-table.ts';
import { formatMilliseconds } from '../lib/format.ts';
import { LessonFrame } from './lesson-frame.ts';

const system =
  'You are the old storyteller of the village. You know every tale of kings and queens, of wolves and foxes, of the ' +
  'forest and the sea. You answer whoever asks in a friendly way, and you always begin with the oldest tale you know. ' +
  'You never leave a tale without its end, and you never frighten the children. ';
const questions = ['Tell me of the wolf.', 'Who was the queen?'];

// Tokens for the question and its answer; no token is shorter than a character.
const room = 60;

/** Two questions behind one system prompt. */
export function prefixHit(app: App): LessonFrame {
  const frame = new LessonFrame(app, {
    id: 'prefix-hit',
    title: 'A prefix hit',
    intro: [
      'Applications put the same long text before each question: the system prompt. Its keys and values are the same each time, so the prefix tree keeps its blocks, and the next prompt that begins alike takes them over.',
      `Two questions are asked behind one system prompt: “${questions[0]}” and “${questions[1]}” The second is then asked again without the prefix tree, to see what it would have taken.`,
    ],
  });
  const bars = new BarTable('Time until the first token');
  const grid = new LiveGrid('Blocks of the prompts');
  frame.show(bars.element, grid.element);

  frame.onRun(
    () => ({ settings: {} }),
    async (engine, signal) => {
      await using recording = await engine.recordCache();
      const watch = new CacheWatch(engine, moment => grid.show(moment), recording);
      // A new number each time, or the first question would find the prompt of the run before.
      const text = system.slice(0, engine.info.contextLength - room);
      const prompt = `${Math.floor(Math.random() * 1e6)}. ${text}`;
      const shown: Bar[] = [];
      const ask = async (label: string, question: string, colour: number, reusePrefix: boolean) => {
        const asked = await firstToken(engine, watch, prompt + question, reusePrefix, signal);
        const computed = asked.prompt - asked.cached;
        const text = `${formatMilliseconds(asked.milliseconds)}, ${computed} of ${asked.prompt} tokens computed`;
        shown.push({ label, value: asked.milliseconds, text, colour });
        bars.show(shown);
        return asked;
      };
      await ask('first question', questions[0] ?? '', 2, true);
      const hit = await ask('second question', questions[1] ?? '', 0, true);
      const cold = await ask('second, without the tree', questions[1] ?? '', 1, false);
      await watch.settle();
      grid.flush();
      const saved = cold.milliseconds - hit.milliseconds;
      return `The second question found ${hit.cached} of its ${hit.prompt} tokens in the cache and computed only ${hit.prompt - hit.cached}. Its first token came after ${formatMilliseconds(hit.milliseconds)} rather than ${formatMilliseconds(cold.milliseconds)}: ${formatMilliseconds(Math.max(saved, 0))} saved.`;
    },
  );
  return frame;
}

async function firstToken(
  engine: Engine,
  watch: CacheWatch,
  prompt: string,
  reusePrefix: boolean,
  signal: AbortSignal,
): Promise<{ milliseconds: number; prompt: number; cached: number }> {
  const run = engine.generate(prompt, { maxTokens: 8, temperature: 0, reusePrefix, signal });
  for await (const _ of run) watch.poll();
  const { timings, usage } = await run.result();
  await watch.settle();
  return { milliseconds: timings.firstToken, prompt: usage.prompt, cached: usage.cached };
}
