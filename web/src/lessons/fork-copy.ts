import type { Session } from 'kvasm';
import type { App } from '../app.ts';
import { colourOf } from '../cache/block-look.ts';
import { type CacheMoment, CacheWatch } from '../cache/cache-watch.ts';
import { LiveGrid } from '../cache/live-grid.ts';
import { make } from '../lib/dom.ts';
import { formatBytes } from '../lib/format.ts';
import { LessonFrame } from './lesson-frame.ts';
import { opening } from './texts.ts';

// Long enough to read what has just happened.
const pause = 900;

/** One text that goes on in two ways. */
export function forkCopy(app: App): LessonFrame {
  const frame = new LessonFrame(app, {
    id: 'fork',
    title: 'Fork, and copy on write',
    intro: [
      'A text is to go on in two ways. The second way needs all keys and values of the first, but no copy of them: its block table just names the same blocks, which now count two holders.',
      'Full blocks are never written again, so they can be shared for good. The last one is not full yet. Whoever writes into it first gets a copy of that one block: copy on write.',
    ],
  });
  const log = make('ol', { class: 'log', 'aria-label': 'What happened' });
  const texts = make('div', { class: 'pair forks' });
  const grid = new LiveGrid('Blocks of the two texts');
  frame.show(texts, grid.element, log);

  frame.onRun(
    () => ({ settings: {} }),
    async (engine, signal) => {
      log.replaceChildren();
      texts.replaceChildren();
      let last: CacheMoment | undefined;
      let line = '';
      await using recording = await engine.recordCache();
      const onMoment = (moment: CacheMoment) => {
        last = moment;
        grid.show(moment);
        // Each step's first line: what comes later only adds tokens.
        if (line === '' && moment.events.length > 0) line = moment.line;
      };
      const watch = new CacheWatch(engine, onMoment, recording);
      await watch.settle();
      const step = async (name: string, work: () => Promise<void>) => {
        line = '';
        await work();
        await watch.settle();
        grid.flush();
        log.append(make('li', {}, make('b', {}, `${name}: `), line));
        await new Promise(resolve => setTimeout(resolve, pause));
        signal.throwIfAborted();
      };
      const write = async (session: Session, prompt: string, count: number, seed: number) => {
        const run = session.generate(prompt, {
          maxTokens: count,
          temperature: 1,
          stopTokens: [],
          seed,
          signal,
        });
        let text = '';
        let sequence = 0;
        for await (const chunk of run) {
          text += chunk.text;
          sequence = run.sequence ?? sequence;
          watch.poll();
        }
        return { text, sequence };
      };

      await using first = engine.session();
      let common = '';
      await step('Write', async () => {
        common = opening + (await write(first, opening, 24, 7)).text;
        texts.replaceChildren(make('p', {}, common));
      });
      let second: Session | undefined;
      await step('Fork', async () => {
        second = await first.fork();
      });
      if (!second) return '';
      await using other = second;
      const saved = (await engine.memory()).kv.shared;
      const ways: HTMLElement[] = [];
      for (const [name, session, seed] of [
        ['One way', other, 11],
        ['The other', first, 23],
      ] as const) {
        await step(name, async () => {
          const { text, sequence } = await write(session, '', 20, seed);
          const way = make('p', { class: 'way' }, common, make('mark', {}, text));
          way.style.setProperty('--owner', `var(--owner-${colourOf(sequence)})`);
          ways.push(way);
          texts.replaceChildren(...ways);
        });
      }
      const copies = last?.view.copies ?? 0;
      return `The fork took no time and no memory: ${formatBytes(saved)} were shared rather than copied. ${copies === 1 ? 'One block was' : `${copies} blocks were`} copied since the model was loaded, when a shared one was written to.`;
    },
  );
  return frame;
}
