import type { App } from '../app.ts';
import { type CacheMoment, CacheWatch } from '../cache/cache-watch.ts';
import { kvTokens } from '../cache/kv-tokens.ts';
import { LiveGrid } from '../cache/live-grid.ts';
import { formatBytes } from '../lib/format.ts';
import { LessonFrame } from './lesson-frame.ts';
import { MaskPicture } from './mask-picture.ts';
import { opening } from './texts.ts';

const most = 120;

/** What a window does to the mask, and to the blocks. */
export function windowSlides(app: App): LessonFrame {
  const frame = new LessonFrame(app, {
    id: 'window',
    title: 'The window slides',
    intro: [
      'With a window, a token sees only so many of the tokens before it. In the picture, each row is a token, and what it sees is coloured: without a window it would be a triangle, with one it is a band. The lines are where blocks end.',
      'A block that no later token can see goes back to the pool. Nothing is moved: the block table has a gap where it was.',
    ],
  });
  const window = frame.select(
    'Window, in tokens',
    ['16', '24', '32', '64'].map(n => [n, n]),
    '32',
  );
  const mask = new MaskPicture('What each token sees: rows are tokens, columns what they look at');
  const grid = new LiveGrid('Blocks of the window');
  const pair = document.createElement('div');
  pair.className = 'pair';
  pair.append(mask.element, grid.element);
  frame.show(pair);

  frame.onRun(
    () => ({ settings: { window: Number(window.value) } }),
    async (engine, signal) => {
      const size = Number(window.value);
      const total = Math.min(most, engine.info.contextLength);
      const bytes = (await engine.memory()).kv.perToken;
      let [mostHeld, tokens] = [0, 0];
      await using recording = await engine.recordCache();
      const onMoment = (moment: CacheMoment) => {
        grid.show(moment);
        tokens = moment.view.sequences.at(-1)?.tokens ?? tokens;
        mostHeld = Math.max(mostHeld, kvTokens(moment.view).used);
        if (tokens > 0) mask.show(Math.min(tokens, total), total, size);
      };
      const watch = new CacheWatch(engine, onMoment, recording);
      await using session = engine.session();
      const { usage } = await session
        .generate(opening, { maxTokens: 0, reusePrefix: false })
        .result();
      const run = session.generate('', {
        maxTokens: Math.max(total - usage.prompt, 1),
        temperature: 0.8,
        stopTokens: [],
        reusePrefix: false,
        signal,
      });
      for await (const _ of run) watch.poll();
      await watch.settle();
      grid.flush();
      mask.flush();
      return `Of ${tokens} tokens, the last one sees ${Math.min(size, tokens)}. The cache never held more than ${mostHeld}: ${formatBytes(mostHeld * bytes)}. Without a window it would hold all, ${formatBytes(tokens * bytes)}, and go on growing.`;
    },
  );
  return frame;
}
