import { make } from '../lib/dom.ts';
import { FramePainter } from '../lib/frame.ts';

const blockTokens = 16;

/** Which tokens see which: a row for each token, with a place for each that it may look at. */
export class MaskPicture {
  readonly element: HTMLElement;
  readonly #canvas = make('canvas', { class: 'mask', role: 'img' });
  readonly #painter = new FramePainter(() => this.#paint());
  #rows = 0;
  #most = 1;
  #window = 1;

  constructor(caption: string) {
    this.#canvas.setAttribute('aria-label', caption);
    this.element = make(
      'figure',
      { class: 'chart' },
      make('figcaption', {}, caption),
      this.#canvas,
    );
  }

  /** @param rows Tokens so far, of `most` in the end. */
  show(rows: number, most: number, window: number): void {
    this.#rows = rows;
    this.#most = most;
    this.#window = window;
    this.#painter.request();
  }

  flush(): void {
    this.#painter.now();
  }

  #paint(): void {
    const size = Math.max(Math.floor(480 / this.#most), 2);
    const side = size * this.#most;
    this.#canvas.width = this.#canvas.height = side;
    const context = this.#canvas.getContext('2d');
    if (!context) return;
    const style = getComputedStyle(this.#canvas);
    const colour = (name: string) => style.getPropertyValue(name);
    context.fillStyle = colour('--page');
    context.fillRect(0, 0, side, side);
    for (let row = 0; row < this.#rows; row++) {
      const first = Math.max(row - this.#window + 1, 0);
      context.fillStyle = colour('--place');
      context.fillRect(0, row * size, first * size, size);
      context.fillStyle = row === this.#rows - 1 ? colour('--owner-1') : colour('--owner-0');
      context.fillRect(first * size, row * size, (row - first + 1) * size, size);
    }
    context.fillStyle = colour('--panel');
    for (let at = blockTokens; at < this.#most; at += blockTokens) {
      context.fillRect(at * size, 0, 1, side);
    }
  }
}
