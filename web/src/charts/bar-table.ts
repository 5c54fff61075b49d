import { make } from '../lib/dom.ts';

export interface Bar {
  readonly label: string;
  readonly value: number;
  /** As it is written. */
  readonly text: string;
  /** Of the palette of owners. */
  readonly colour: number;
}

/** Values as bars: a table, for whoever does not see the bars. */
export class BarTable {
  readonly element: HTMLElement;
  readonly #body = make('tbody');

  /** @param caption What the bars measure. */
  constructor(caption: string) {
    this.element = make('table', { class: 'bars' }, make('caption', {}, caption), this.#body);
    this.element.hidden = true;
  }

  show(bars: readonly Bar[]): void {
    const most = Math.max(...bars.map(({ value }) => value), Number.MIN_VALUE);
    this.element.hidden = bars.length === 0;
    this.#body.replaceChildren(
      ...bars.map(({ label, value, text, colour }) => {
        const bar = make('span', { class: `fill-${colour}`, 'aria-hidden': 'true' });
        bar.style.width = `${(100 * value) / most}%`;
        return make(
          'tr',
          {},
          make('th', { scope: 'row' }, label),
          make('td', { class: 'bar-cell' }, bar),
          make('td', { class: 'bar-value' }, text),
        );
      }),
    );
  }
}
