import { make, setText } from '../lib/dom.ts';
import { FramePainter } from '../lib/frame.ts';
import { BlockGrid } from './block-grid.ts';
import type { CacheEvent } from './cache-events.ts';
import type { CacheMoment } from './cache-watch.ts';
import { makeLegend } from './legend.ts';

const quiet = 'Nothing has happened yet.';

/** The grid of blocks with the line that says what has just happened. */
export class LiveGrid {
  readonly element: HTMLElement;
  readonly #grid: BlockGrid;
  readonly #line = make('p', { class: 'event-line' });
  readonly #painter = new FramePainter(() => this.#paint());
  #moment: CacheMoment | undefined;
  #events: CacheEvent[] = [];

  constructor(name: string) {
    this.#grid = new BlockGrid(name);
    this.element = make(
      'div',
      { class: 'live-grid' },
      this.#line,
      this.#grid.element,
      makeLegend(),
    );
    this.clear();
  }

  /** At any rate. */
  show(moment: CacheMoment): void {
    this.#moment = moment;
    this.#events.push(...moment.events);
    this.#painter.request();
  }

  /** What is shown last, or by hand, must not wait for a frame. */
  flush(): void {
    this.#painter.now();
  }

  clear(): void {
    this.#moment = undefined;
    this.#events = [];
    this.#grid.clear();
    this.#line.textContent = quiet;
  }

  #paint(): void {
    const moment = this.#moment;
    if (!moment) return;
    this.#grid.show(moment.view, moment.window, this.#events);
    this.#events = [];
    setText(this.#line, moment.line || quiet);
  }
}
