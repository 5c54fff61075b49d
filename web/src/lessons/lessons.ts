import type { App } from '../app.ts';
import { make } from '../lib/dom.ts';
import { forkCopy } from './fork-copy.ts';
import type { LessonFrame } from './lesson-frame.ts';
import { prefillDecode } from './prefill-decode.ts';
import { prefixHit } from './prefix-hit.ts';
import { smallerKeys } from './smaller-keys.ts';
import { tableEnd } from './table-end.ts';
import { whyCache } from './why-cache.ts';
import { windowSlides } from './window-slides.ts';

const lessons: readonly (readonly [id: string, title: string, make: (app: App) => LessonFrame])[] =
  [
    ['why-cache', 'Why a cache?', whyCache],
    ['prefill-decode', 'Prefill and decode', prefillDecode],
    ['window', 'The window slides', windowSlides],
    ['prefix-hit', 'A prefix hit', prefixHit],
    ['fork', 'Fork, copy on write', forkCopy],
    ['smaller', 'Smaller keys and values', smallerKeys],
    ['end', 'The end of the table', tableEnd],
  ];

/** The list of lessons, and the one that is open. Each is made when it is first opened. */
export class Lessons {
  readonly #app: App;
  readonly #links: ReadonlyMap<string, HTMLButtonElement>;
  readonly #place = make('div', { class: 'lesson-place' });
  readonly #made = new Map<string, LessonFrame>();

  /** @param onShow Told when a lesson is opened by hand. */
  constructor(app: App, root: HTMLElement, onShow: (id: string) => void) {
    this.#app = app;
    this.#links = new Map(
      lessons.map(([id, title], index) => {
        const button = make(
          'button',
          { type: 'button', 'data-lesson': id },
          make('span', { class: 'lesson-number' }, String(index + 1)),
          title,
        );
        button.addEventListener('click', () => {
          this.show(id);
          onShow(id);
        });
        return [id, button];
      }),
    );
    const items = [...this.#links.values()].map(button => make('li', {}, button));
    root.append(
      make('nav', { class: 'lesson-list', 'aria-label': 'Lessons' }, make('ol', {}, ...items)),
      this.#place,
    );
  }

  /** @param id Another than a lesson's opens the first. */
  show(id: string): void {
    const lesson = lessons.find(([name]) => name === id) ?? lessons[0];
    if (!lesson) return;
    const [name, , makeFrame] = lesson;
    const frame = this.#made.get(name) ?? makeFrame(this.#app);
    this.#made.set(name, frame);
    this.#place.replaceChildren(frame.element);
    for (const [other, button] of this.#links) {
      if (other === name) button.setAttribute('aria-current', 'true');
      else button.removeAttribute('aria-current');
    }
  }
}
