/** When the page paints what a run changes: all of it in one frame, and not in every frame. */

/** What a pace needs of the browser. */
export interface FrameClock {
  now(): number;
  requestFrame(callback: () => void): void;
  setTimer(callback: () => void, milliseconds: number): void;
  /** Calls back once the frame is through, with its styles, layout and paint. */
  afterFrame(callback: () => void): void;
}

// Every third of a screen's frames: without a GPU, they are painted by the processors that compute.
const leastInterval = 40;
// Of the time, frames may take this much, so that slow devices paint less often.
const mostShare = 0.25;

/** Gathers paints, and runs them together in frames that are some way apart. */
export class Pace {
  readonly #clock: FrameClock;
  readonly #waiting = new Set<() => void>();
  #scheduled = false;
  #notBefore = 0;

  constructor(clock: FrameClock) {
    this.#clock = clock;
  }

  add(paint: () => void): void {
    this.#waiting.add(paint);
    if (!this.#scheduled) this.#schedule();
  }

  remove(paint: () => void): void {
    this.#waiting.delete(paint);
  }

  #schedule(): void {
    this.#scheduled = true;
    const wait = this.#notBefore - this.#clock.now();
    const requestFrame = () => this.#clock.requestFrame(() => this.#paint());
    if (wait > 0) this.#clock.setTimer(requestFrame, wait);
    else requestFrame();
  }

  #paint(): void {
    const from = this.#clock.now();
    this.#clock.afterFrame(() => {
      const to = this.#clock.now();
      this.#notBefore = Math.max(from + leastInterval, to + (to - from) * (1 / mostShare - 1));
      this.#scheduled = false;
      if (this.#waiting.size > 0) this.#schedule();
    });
    const paints = [...this.#waiting];
    // What is asked for from here on waits for another frame.
    this.#waiting.clear();
    for (const paint of paints) paint();
  }
}

const pace = new Pace({
  now: () => performance.now(),
  requestFrame: callback => requestAnimationFrame(callback),
  setTimer: (callback, milliseconds) => setTimeout(callback, milliseconds),
  afterFrame(callback) {
    // A message that is sent within a frame arrives after it.
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = () => {
      port1.close();
      callback();
    };
    port2.postMessage(undefined);
  },
});

/**
 * Paints some frames later, however often it is asked to: tokens may come faster than anybody sees them. Frames do not come
 * while the page is hidden, so the last state of anything must be painted with `now`; so must what a person waits for.
 */
export class FramePainter {
  readonly #paint: () => void;

  constructor(paint: () => void) {
    this.#paint = paint;
  }

  request(): void {
    pace.add(this.#paint);
  }

  now(): void {
    pace.remove(this.#paint);
    this.#paint();
  }
}
