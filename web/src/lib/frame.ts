/**
 * Runs a paint once in the next frame, however often it is asked for: tokens may come faster than the screen shows them.
 * Frames do not come while the page is hidden, so the last state of anything must be painted with `now`.
 */
export class FramePainter {
  readonly #paint: () => void;
  #frame: number | undefined;

  constructor(paint: () => void) {
    this.#paint = paint;
  }

  request(): void {
    this.#frame ??= requestAnimationFrame(() => this.now());
  }

  now(): void {
    if (this.#frame !== undefined) cancelAnimationFrame(this.#frame);
    this.#frame = undefined;
    this.#paint();
  }
}
