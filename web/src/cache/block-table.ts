import type { CacheSequence, CacheView } from 'kvasm';
import { make } from '../lib/dom.ts';
import { colourOf } from './block-look.ts';

/** Where a sequence's positions lie: its table of blocks. */
export class BlockTable {
  readonly element: HTMLElement;
  readonly #choice = make('select', { id: 'table-sequence' });
  readonly #label = make('label', { for: 'table-sequence' }, 'Block table of');
  readonly #list = make('ol', { class: 'block-table', 'aria-label': 'Block table' });
  readonly #empty = make('p', { class: 'hint' });
  #view: CacheView | undefined;
  #key = '';

  constructor() {
    this.#choice.addEventListener('change', () => this.#show());
    this.element = make(
      'div',
      { class: 'block-table-panel' },
      make('div', { class: 'inline-field' }, this.#label, this.#choice),
      this.#empty,
      this.#list,
    );
    this.clear();
  }

  show(view: CacheView): void {
    this.#view = view;
    const sequences = view.sequences.filter(({ table }) => table.length > 0);
    const ids = sequences.map(({ id }) => String(id));
    const offered = [...this.#choice.options].map(option => option.value);
    if (ids.join() !== offered.join()) {
      const chosen = this.#choice.value;
      this.#choice.replaceChildren(
        ...ids.map(id => make('option', { value: id }, `sequence ${id}`)),
      );
      // The latest, unless the person looks at another.
      this.#choice.value = ids.includes(chosen) ? chosen : (ids.at(-1) ?? '');
    }
    this.#show();
  }

  clear(): void {
    this.#view = undefined;
    this.#choice.replaceChildren();
    this.#show();
  }

  #show(): void {
    const sequence = this.#view?.sequences.find(({ id }) => String(id) === this.#choice.value);
    const some = sequence !== undefined && sequence.table.length > 0;
    this.#choice.hidden = this.#label.hidden = !some;
    this.#list.hidden = !some;
    this.#empty.hidden = some;
    this.#empty.textContent = 'No sequence holds blocks: there is no block table to show.';
    if (!some) return;
    const key = `${sequence.id}:${sequence.tokens}:${sequence.table.join()}`;
    if (key === this.#key) return;
    this.#key = key;
    const blockTokens = this.#view?.blockTokens ?? 16;
    this.#list.replaceChildren(...rows(sequence, blockTokens));
  }
}

function rows({ id, table, tokens }: CacheSequence, blockTokens: number): HTMLElement[] {
  return table.map((block, index) => {
    const first = index * blockTokens;
    const last = Math.min(first + blockTokens, tokens) - 1;
    const row = make(
      'li',
      { class: block < 0 ? 'dropped' : undefined },
      make('span', { class: 'positions' }, last > first ? `${first}–${last}` : `${first}`),
      make('span', { class: 'unseen' }, ' lies in '),
      make('span', { class: 'in-block' }, block < 0 ? 'dropped' : `block ${block}`),
    );
    row.style.setProperty('--owner', `var(--owner-${colourOf(id)})`);
    return row;
  });
}
