import { make, makeSvg } from '../lib/dom.ts';
import { FramePainter } from '../lib/frame.ts';
import { ticks } from './scale.ts';

export interface Series {
  readonly name: string;
  /** Of the palette of owners. */
  readonly colour: number;
  /** By x = 1, 2, ... */
  readonly values: readonly number[];
}

const [width, height] = [720, 280];
const margin = { left: 44, right: 16, top: 24, bottom: 40 };

/** Lines over a count, drawn anew at each change, once a frame. */
export class LineChart {
  readonly element: HTMLElement;
  readonly #picture = makeSvg('svg', {
    viewBox: `0 0 ${width} ${height}`,
    class: 'line-chart',
    role: 'img',
  });
  readonly #legend = make('ul', { class: 'legend' });
  readonly #painter = new FramePainter(() => this.#paint());
  readonly #labels: { readonly x: string; readonly y: string };
  #series: readonly Series[] = [];
  #mostX = 1;

  /** @param labels What the axes measure, with units. */
  constructor(title: string, labels: { readonly x: string; readonly y: string }) {
    this.#labels = labels;
    this.#picture.setAttribute('aria-label', title);
    this.element = make(
      'figure',
      { class: 'chart' },
      make('figcaption', {}, title),
      this.#legend,
      this.#picture,
    );
  }

  /** @param mostX How far the count will go. */
  show(series: readonly Series[], mostX: number): void {
    this.#series = series;
    this.#mostX = mostX;
    this.#painter.request();
  }

  flush(): void {
    this.#painter.now();
  }

  #paint(): void {
    const yTicks = ticks(Math.max(...this.#series.flatMap(({ values }) => values), 0), 4);
    const most = yTicks.at(-1) ?? 1;
    const x = (value: number) =>
      margin.left + ((width - margin.left - margin.right) * value) / this.#mostX;
    const y = (value: number) =>
      height - margin.bottom - ((height - margin.top - margin.bottom) * value) / most;
    const xTicks = ticks(this.#mostX, 4).filter(tick => tick <= this.#mostX);
    this.#picture.replaceChildren(
      ...yTicks.map(tick => gridLine(margin.left, y(tick), width - margin.right, y(tick))),
      ...yTicks.map(tick => label(String(tick), margin.left - 8, y(tick) + 4, 'end')),
      ...xTicks.map(tick => label(String(tick), x(tick), height - margin.bottom + 18, 'middle')),
      label(this.#labels.y, margin.left - 8, margin.top - 10, 'end'),
      label(this.#labels.x, width - margin.right, height - 6, 'end'),
      ...this.#series.map(({ colour, values }) =>
        makeSvg('path', {
          class: `line owner-${colour}`,
          d: values.map((value, i) => `${i === 0 ? 'M' : 'L'}${x(i + 1)} ${y(value)}`).join(''),
        }),
      ),
    );
    this.#legend.replaceChildren(
      ...this.#series.map(({ name, colour }) =>
        make(
          'li',
          {},
          make('span', { class: `legend-key fill-${colour}`, 'aria-hidden': 'true' }),
          name,
        ),
      ),
    );
  }
}

function gridLine(x1: number, y1: number, x2: number, y2: number): SVGElement {
  return makeSvg('line', { class: 'grid-line', x1, y1, x2, y2 });
}

function label(text: string, x: number, y: number, anchor: string): SVGElement {
  return makeSvg('text', { x, y, 'text-anchor': anchor }, text);
}
