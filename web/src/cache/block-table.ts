import type { CacheView } from 'kvasm';
import { make, setText } from '../lib/dom.ts';
import { colourOf } from './block-look.ts';

interface Row {
  readonly element: HTMLElement;
  readonly positions: HTMLElement;
  readonly place: HTMLElement;
}

/** Where a sequence's positions lie: its table of blocks. */
export class BlockTable {
  readonly element: HTMLElement;
  readonly #choice = make('select', { id: 'table-sequence' });
  readonly #label = make('label', { for: 'table-sequence' }, 'Block table of');
  readonly #list = make('ol', { class: 'block-table', 'aria-label': 'Block table' });
  readonly #empty = make('p', { class: 'hint' });
  readonly #rows: Row[] = [];
  #view: CacheView | undefined;
  #offered = '';

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
    const ids = view.sequences.filter(({ table }) => table.length > 0).map(({ id }) => String(id));
    if (ids.join() !== this.#offered) {
      this.#offered = ids.join();
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
    this.#offered = '';
    this.#choice.replaceChildren();
    this.#show();
  }

  #show(): void {
    const sequence = this.#view?.sequences.find(({ id }) => String(id) === this.#choice.value);
    const { id = 1, table = [], tokens = 0 } = sequence ?? {};
    const some = table.length > 0;
    this.#choice.hidden = this.#label.hidden = !some;
    this.#list.hidden = !some;
    this.#empty.hidden = some;
    setText(this.#empty, 'No sequence holds blocks: there is no block table to show.');
    while (this.#rows.length > table.length) this.#rows.pop()?.element.remove();
    while (this.#rows.length < table.length) {
      const row = makeRow();
      this.#rows.push(row);
      this.#list.append(row.element);
    }
    this.#list.style.setProperty('--owner', `var(--owner-${colourOf(id)})`);
    const blockTokens = this.#view?.blockTokens ?? 16;
    for (const [index, block] of table.entries()) {
      const row = this.#rows[index];
      if (!row) continue;
      const first = index * blockTokens;
      const last = Math.min(first + blockTokens, tokens) - 1;
      row.element.classList.toggle('dropped', block < 0);
      setText(row.positions, last > first ? `${first}–${last}` : `${first}`);
      setText(row.place, block < 0 ? 'dropped' : `block ${block}`);
    }
  }
}

function makeRow(): Row {
  const positions = make('span', { class: 'positions' });
  const place = make('span', { class: 'in-block' });
  const element = make('li', {}, positions, make('span', { class: 'unseen' }, ' lies in '), place);
  return { element, positions, place };
}
