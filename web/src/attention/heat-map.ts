import { make } from '../lib/dom.ts';
import { visibleText } from '../playground/token-info.ts';
import { type AttentionMap, strength, visibility, weightAt } from './attention-map.ts';

// In CSS pixels.
const labelSpace = 96;
const [leastCell, mostCell] = [5, 30];
const leastForLabels = 10;

export interface Place {
  readonly query: number;
  readonly key: number;
}

/** A square for each pair of tokens, gone through by pointer or by arrow keys. */
export class HeatMap {
  readonly element: HTMLElement;
  readonly #canvas = make('canvas', { 'aria-hidden': 'true' });
  readonly #frame = make('div', { class: 'heat-frame', tabindex: 0, role: 'group' });
  readonly #onPlace: (place: Place) => void;
  #map: AttentionMap | undefined;
  #place: Place = { query: 0, key: 0 };
  #cell = mostCell;

  /** @param onPlace Told of the place that someone points at. */
  constructor(onPlace: (place: Place) => void) {
    this.#onPlace = onPlace;
    this.#frame.setAttribute(
      'aria-label',
      'Attention weights. The up and down arrow keys choose the token that looks, left and right the one it looks at.',
    );
    this.#frame.append(this.#canvas);
    this.element = make('div', { class: 'heat-map' }, this.#frame);
    for (const type of ['pointermove', 'pointerdown'] as const) {
      this.#canvas.addEventListener(type, event => this.#onPointer(event));
    }
    this.#frame.addEventListener('keydown', event => this.#onKey(event));
    new ResizeObserver(() => this.#draw()).observe(this.element);
    // The colours are read when it is drawn.
    matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => this.#draw());
  }

  show(map: AttentionMap, place: Place): void {
    this.#map = map;
    this.#place = place;
    this.#draw();
  }

  #onPointer(event: PointerEvent): void {
    const size = this.#map?.texts.length ?? 0;
    const box = this.#canvas.getBoundingClientRect();
    const key = Math.floor((event.clientX - box.left - this.#space()) / this.#cell);
    const query = Math.floor((event.clientY - box.top - this.#space()) / this.#cell);
    if (query >= 0 && query < size && key < size) this.#go({ query, key: Math.max(key, 0) });
  }

  #onKey(event: KeyboardEvent): void {
    const steps: Record<string, readonly [query: number, key: number]> = {
      ArrowUp: [-1, 0],
      ArrowDown: [1, 0],
      ArrowLeft: [0, -1],
      ArrowRight: [0, 1],
    };
    const step = steps[event.key];
    const last = (this.#map?.texts.length ?? 0) - 1;
    if (!step || last < 0) return;
    event.preventDefault();
    const clamp = (value: number) => Math.min(Math.max(value, 0), last);
    this.#go({ query: clamp(this.#place.query + step[0]), key: clamp(this.#place.key + step[1]) });
  }

  #go(place: Place): void {
    if (place.query === this.#place.query && place.key === this.#place.key) return;
    this.#place = place;
    this.#draw();
    this.#onPlace(place);
  }

  #space(): number {
    return this.#cell >= leastForLabels ? labelSpace : 0;
  }

  #draw(): void {
    const map = this.#map;
    const width = this.element.clientWidth;
    if (!map || width === 0) return;
    const count = map.texts.length;
    this.#cell = Math.min(Math.max(Math.floor((width - labelSpace) / count), leastCell), mostCell);
    if (this.#cell < leastForLabels) this.#cell = Math.max(Math.floor(width / count), leastCell);
    const space = this.#space();
    const side = space + this.#cell * count;
    const scale = devicePixelRatio;
    this.#canvas.width = this.#canvas.height = Math.round(side * scale);
    this.#canvas.style.width = this.#canvas.style.height = `${side}px`;
    const context = this.#canvas.getContext('2d');
    if (!context) return;
    context.scale(scale, scale);
    const style = getComputedStyle(this.#canvas);
    const colour = (name: string) => style.getPropertyValue(name).trim();
    context.font = `${Math.min(this.#cell - 1, 13)}px ${style.fontFamily}`;
    this.#drawCells(context, map, space, colour);
    if (space > 0) this.#drawLabels(context, map, space, colour);
    this.#drawPlace(context, count, space, colour);
  }

  #drawCells(
    context: CanvasRenderingContext2D,
    map: AttentionMap,
    space: number,
    colour: (name: string) => string,
  ): void {
    const count = map.texts.length;
    const cell = this.#cell;
    const gap = cell > 8 ? 1 : 0;
    for (let query = 0; query < count; query++) {
      for (let key = 0; key < count; key++) {
        const seen = visibility(query, key, map.window);
        const [x, y] = [space + key * cell, space + query * cell];
        context.globalAlpha = 1;
        context.fillStyle = colour(seen === 'out-of-window' ? '--masked-window' : '--masked');
        if (seen === 'seen') context.fillStyle = colour('--heat-low');
        context.fillRect(x, y, cell - gap, cell - gap);
        if (seen !== 'seen') continue;
        context.globalAlpha = strength(weightAt(map, query, key));
        context.fillStyle = colour('--heat-high');
        context.fillRect(x, y, cell - gap, cell - gap);
      }
    }
    context.globalAlpha = 1;
  }

  #drawLabels(
    context: CanvasRenderingContext2D,
    { texts }: AttentionMap,
    space: number,
    colour: (name: string) => string,
  ): void {
    const cell = this.#cell;
    context.textBaseline = 'middle';
    for (const [index, text] of texts.entries()) {
      const middle = space + (index + 0.5) * cell;
      const label = shorten(visibleText(text));
      const { query, key } = this.#place;
      context.fillStyle = colour(index === query ? '--accent' : '--text');
      context.textAlign = 'right';
      context.fillText(label, space - 6, middle);
      context.save();
      context.translate(middle, space - 6);
      context.rotate(-Math.PI / 2);
      context.fillStyle = colour(index === key ? '--accent' : '--text');
      context.textAlign = 'left';
      context.fillText(label, 0, 0);
      context.restore();
    }
  }

  #drawPlace(
    context: CanvasRenderingContext2D,
    count: number,
    space: number,
    colour: (name: string) => string,
  ): void {
    const { query, key } = this.#place;
    const cell = this.#cell;
    context.strokeStyle = colour('--accent');
    context.lineWidth = 1.5;
    context.strokeRect(space - 1, space + query * cell - 1, count * cell + 1, cell + 1);
    context.lineWidth = 2.5;
    context.strokeRect(space + key * cell - 1, space + query * cell - 1, cell + 1, cell + 1);
  }
}

function shorten(text: string): string {
  return text.length > 10 ? `${text.slice(0, 9)}…` : text;
}
