import { GenerationError, type Overflow } from 'kvasm';
import type { App } from '../app.ts';
import { type CacheMoment, CacheWatch } from '../cache/cache-watch.ts';
import { LiveGrid } from '../cache/live-grid.ts';
import { make } from '../lib/dom.ts';
import { LessonFrame } from './lesson-frame.ts';
import { opening } from './texts.ts';

const positions = 48;
const kept = 8;

/** What happens where the positions end. */
export function tableEnd(app: App): LessonFrame {
  const frame = new LessonFrame(app, {
    id: 'end',
    title: 'The end of the position table',
    intro: [
      'GPT-2 has learned a vector for each position, and adds it to the token before anything else. So each key carries the position that it was computed for, and there is no position after the last. Keys cannot be moved up to make room: they would claim to be where they are not.',
      `Here the model gets only ${positions} positions. At their end, a run can stop; it can fail with an error; or it can shift: keep the first ${kept} tokens and the latest ones, compute their keys and values anew from position 0, and go on.`,
    ],
  });
  const overflow = frame.select(
    'At the end',
    [
      ['stop', 'stop'],
      ['error', 'error'],
      ['shift', 'shift'],
    ],
    'shift',
  );
  const places = Array.from({ length: positions }, (_, i) =>
    make('span', { class: 'position' }, String(i)),
  );
  const strip = make('div', { class: 'positions-strip', role: 'img' }, ...places);
  strip.setAttribute('aria-label', 'Positions that are taken');
  const text = make('p', { class: 'written' });
  const grid = new LiveGrid('Blocks of the positions');
  frame.show(strip, text, grid.element);

  frame.onRun(
    () => ({ settings: { contextLength: positions } }),
    async (engine, signal) => {
      const way = overflow.value as Overflow;
      text.textContent = opening;
      let taken = 0;
      await using recording = await engine.recordCache();
      const onMoment = (moment: CacheMoment) => {
        grid.show(moment);
        const size = moment.view.sequences.at(-1)?.tokens ?? 0;
        if (size > 0) taken = size;
        for (const [i, place] of places.entries()) place.classList.toggle('taken', i < taken);
        strip.setAttribute('aria-label', `${taken} of ${positions} positions are taken`);
      };
      const watch = new CacheWatch(engine, onMoment, recording);
      let written = 0;
      // Its blocks stay until they are shown.
      await using session = engine.session();
      try {
        const run = session.generate(opening, {
          maxTokens: 90,
          overflow: way,
          temperature: 0.8,
          stopTokens: [],
          ...(way === 'shift' ? { nKeep: kept } : {}),
          signal,
        });
        for await (const chunk of run) {
          text.textContent += chunk.text;
          written++;
          watch.poll();
        }
      } catch (error) {
        if (!(error instanceof GenerationError && error.code === 'context-full')) throw error;
        return `After ${written} tokens the run failed, with the error “${error.message}” What was written until then is there.`;
      } finally {
        await watch.settle();
        grid.flush();
      }
      if (way === 'stop') {
        return `After ${written} tokens, though 90 were asked for, the run stopped: the positions are taken.`;
      }
      return `The run wrote ${written} tokens, though there are only ${positions} positions: each time they were taken, it kept the first ${kept} tokens and the latest, computed them anew, and went on.`;
    },
  );
  return frame;
}
