import { make, setText } from '../lib/dom.ts';
import type { CacheMoment } from './cache-watch.ts';

// Enough for any run of GPT-2's 1024 positions; the oldest go first.
const most = 2048;
// Slow enough to read the line that comes with each.
const playMilliseconds = 400;

export interface TimelineListener {
  /** The latest moment is to be shown, some time. */
  readonly onFollow: (moment: CacheMoment) => void;
  /** Someone has gone to a moment, and waits for it. */
  readonly onSeek: (moment: CacheMoment) => void;
}

/** Goes back and forth among the moments that were seen. What is shown follows the latest until someone takes hold. */
export class Timeline {
  readonly element: HTMLElement;
  readonly #listener: TimelineListener;
  readonly #slider = make('input', {
    type: 'range',
    min: 0,
    max: 0,
    value: 0,
    id: 'timeline',
    'aria-label': 'Step of the run',
  });
  readonly #back = make('button', { type: 'button', 'aria-label': 'Step back' }, '‹');
  readonly #forth = make('button', { type: 'button', 'aria-label': 'Step forward' }, '›');
  readonly #play = make('button', { type: 'button', class: 'play' }, 'Replay');
  readonly #place = make('span', { class: 'place' });
  #moments: CacheMoment[] = [];
  #at = 0;
  #timer: ReturnType<typeof setInterval> | undefined;

  constructor(listener: TimelineListener) {
    this.#listener = listener;
    this.element = make(
      'div',
      { class: 'timeline', role: 'group', 'aria-label': 'Replay' },
      this.#back,
      this.#slider,
      this.#forth,
      this.#place,
      this.#play,
    );
    this.#slider.addEventListener('input', () => this.#go(this.#slider.valueAsNumber));
    this.#back.addEventListener('click', () => this.#go(this.#at - 1));
    this.#forth.addEventListener('click', () => this.#go(this.#at + 1));
    this.#play.addEventListener('click', () => this.#togglePlay());
    this.#refresh();
  }

  /** Whether the latest moment is the one shown. */
  get live(): boolean {
    return this.#at >= this.#moments.length - 1;
  }

  add(moment: CacheMoment): void {
    const { live } = this;
    // Without an event it is no step; but what runs hold outside of the blocks may have changed.
    if (moment.events.length > 0 || this.#moments.length === 0) this.#moments.push(moment);
    if (this.#moments.length > most) {
      this.#moments.shift();
      this.#at--;
    }
    if (live) this.#at = this.#moments.length - 1;
    if (live) this.#listener.onFollow(moment);
  }

  /** The controls are brought up to date by whoever paints, and not at each moment. */
  refresh(): void {
    this.#refresh();
  }

  /** Forgets what was, but for the latest moment. */
  restart(): void {
    this.#stop();
    this.#moments = this.#moments.slice(-1);
    this.#at = Math.max(this.#moments.length - 1, 0);
    this.#refresh();
  }

  clear(): void {
    this.#moments = [];
    this.restart();
  }

  #go(index: number): void {
    this.#stop();
    this.#show(index);
  }

  #show(index: number): void {
    const moment = this.#moments[Math.min(Math.max(index, 0), this.#moments.length - 1)];
    if (!moment) return;
    this.#at = this.#moments.indexOf(moment);
    this.#listener.onSeek(moment);
    this.#refresh();
  }

  #togglePlay(): void {
    if (this.#timer !== undefined) {
      this.#stop();
      this.#refresh();
      return;
    }
    this.#show(this.live ? 0 : this.#at);
    this.#timer = setInterval(() => {
      this.#show(this.#at + 1);
      if (this.live) this.#stop();
      this.#refresh();
    }, playMilliseconds);
    this.#refresh();
  }

  #stop(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  #refresh(): void {
    const last = Math.max(this.#moments.length - 1, 0);
    this.#slider.max = String(last);
    this.#slider.valueAsNumber = this.#at;
    this.#slider.disabled = this.#play.disabled = last === 0;
    this.#back.disabled = this.#at === 0;
    this.#forth.disabled = this.#at >= last;
    setText(this.#play, this.#timer === undefined ? 'Replay' : 'Pause');
    setText(this.#place, last === 0 ? 'no steps yet' : `step ${this.#at} of ${last}`);
  }
}
