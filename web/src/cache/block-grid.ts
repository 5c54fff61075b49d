import type { CacheView } from 'kvasm';
import { make, setText } from '../lib/dom.ts';
import {
  type BlockLook,
  blockLooks,
  colourOf,
  describeLook,
  firstPlaces,
  sameLook,
} from './block-look.ts';
import type { CacheEvent } from './cache-events.ts';

interface Cell {
  readonly element: HTMLElement;
  readonly fill: HTMLElement;
  readonly unseen: HTMLElement;
  readonly refs: HTMLElement;
  /** What screen readers say. */
  readonly name: HTMLElement;
  look: BlockLook | undefined;
}

let grids = 0;

// A block's tokens are drawn in two rows.
const rows = 2;

// How long a block that something has just happened to stays marked.
const markMilliseconds = 1200;

/** The pool of blocks, a cell each. Only cells that have changed are touched. */
export class BlockGrid {
  readonly element: HTMLElement;
  readonly #detail: HTMLElement;
  readonly #list: HTMLElement;
  #cells: Cell[] = [];
  #blockTokens = 16;
  #selected = -1;

  /** @param name What screen readers call it. */
  constructor(name: string) {
    const id = `block-grid-${++grids}`;
    this.#list = make('div', {
      class: 'blocks',
      role: 'listbox',
      tabindex: 0,
      'aria-label': name,
      'aria-describedby': id,
    });
    this.#detail = make('p', { class: 'block-detail hint', id });
    this.element = make('div', { class: 'block-grid' }, this.#list, this.#detail);
    this.#list.addEventListener('keydown', event => this.#onKey(event));
    this.#list.addEventListener('pointerover', event => this.#onPointer(event));
    this.#list.addEventListener('pointerleave', () => this.#select(-1));
    this.#list.addEventListener('blur', () => this.#select(-1));
    this.#showDetail();
  }

  /** @param events What led to the view; the blocks concerned are marked for a moment. */
  show(view: CacheView, window?: number, events: readonly CacheEvent[] = []): void {
    if (this.#cells.length !== view.blocks.length) this.#rebuild(view.blocks.length);
    this.#blockTokens = view.blockTokens;
    for (const look of blockLooks(view, window)) {
      const cell = this.#cells[look.id];
      if (cell && !sameLook(cell.look, look)) this.#paint(cell, look);
    }
    for (const event of events) this.#mark(event);
    if (this.#selected >= 0) this.#showDetail();
  }

  clear(): void {
    this.#rebuild(0);
  }

  #rebuild(count: number): void {
    this.#selected = -1;
    this.#cells = Array.from({ length: count }, (_, cell) => makeCell(this.#detail.id, cell));
    this.#list.dataset.size = count > 128 ? 'small' : count > 40 ? 'middle' : 'large';
    this.#list.replaceChildren(...this.#cells.map(cell => cell.element));
    this.#list.hidden = count === 0;
    this.#showDetail();
  }

  #paint(cell: Cell, look: BlockLook): void {
    const { element, fill, unseen, refs } = cell;
    const columns = this.#blockTokens / rows;
    const before = cell.look;
    cell.look = look;
    element.dataset.kind = look.kind;
    if (before?.filled !== look.filled)
      fill.style.clipPath = firstPlaces(look.filled, columns, rows);
    if (before?.unseen !== look.unseen)
      unseen.style.clipPath = firstPlaces(look.unseen, columns, rows);
    const [first, second = first] = look.owners;
    setColour(element, '--owner', first);
    setColour(element, '--sharer', second);
    element.classList.toggle('in-tree', look.inPrefixTree);
    element.classList.toggle('shared', look.owners.length > 1);
    setText(refs, look.refs > 1 ? `×${look.refs}` : '');
  }

  #mark(event: CacheEvent): void {
    switch (event.kind) {
      case 'copied':
        this.#markBlocks([event.from, event.to], 'copied');
        break;
      case 'evicted':
      case 'slid':
      case 'reused':
        this.#markBlocks(event.blocks, event.kind);
        break;
    }
  }

  #markBlocks(blocks: readonly number[], mark: string): void {
    for (const block of blocks) {
      const element = this.#cells[block]?.element;
      if (!element) continue;
      element.dataset.mark = mark;
      const at = String(performance.now());
      element.dataset.markedAt = at;
      setTimeout(() => {
        if (element.dataset.markedAt === at) delete element.dataset.mark;
      }, markMilliseconds);
    }
  }

  #onKey(event: KeyboardEvent): void {
    const columns = getComputedStyle(this.#list).gridTemplateColumns.split(' ').length;
    const last = this.#cells.length - 1;
    const at = Math.max(this.#selected, 0);
    const moves: Record<string, number> = {
      ArrowRight: this.#selected < 0 ? 0 : at + 1,
      ArrowLeft: at - 1,
      ArrowDown: this.#selected < 0 ? 0 : at + columns,
      ArrowUp: at - columns,
      Home: 0,
      End: last,
      Escape: -1,
    };
    const to = moves[event.key];
    if (to === undefined) return;
    event.preventDefault();
    this.#select(event.key === 'Escape' ? -1 : Math.min(Math.max(to, 0), last));
  }

  #onPointer(event: PointerEvent): void {
    const cell = event.target instanceof Element ? event.target.closest('.block') : null;
    this.#select(this.#cells.findIndex(({ element }) => element === cell));
  }

  #select(id: number): void {
    if (id === this.#selected) return;
    this.#cells[this.#selected]?.element.removeAttribute('aria-selected');
    this.#selected = id;
    const cell = this.#cells[id];
    cell?.element.setAttribute('aria-selected', 'true');
    if (cell) this.#list.setAttribute('aria-activedescendant', cell.element.id);
    else this.#list.removeAttribute('aria-activedescendant');
    this.#showDetail();
  }

  #showDetail(): void {
    const look = this.#cells[this.#selected]?.look;
    const text = look
      ? describeLook(look, this.#blockTokens)
      : this.#cells.length === 0
        ? 'The blocks appear here once a model is loaded.'
        : 'Point at a block, or go through them with the arrow keys, to see what it holds.';
    setText(this.#detail, text);
    const cell = this.#cells[this.#selected];
    if (cell) setText(cell.name, text);
  }
}

function makeCell(grid: string, id: number): Cell {
  const fill = make('span', { class: 'block-fill' });
  const unseen = make('span', { class: 'block-unseen' });
  const refs = make('span', { class: 'block-refs', 'aria-hidden': 'true' });
  const name = make('span', { class: 'unseen' }, `Block ${id}`);
  const element = make(
    'div',
    { class: 'block', role: 'option', id: `${grid}-${id}` },
    make('span', { class: 'block-id', 'aria-hidden': 'true' }, String(id)),
    refs,
    make('span', { class: 'block-places' }, fill, unseen),
    name,
  );
  fill.style.clipPath = unseen.style.clipPath = firstPlaces(0, 1, 1);
  element.dataset.kind = 'free';
  return { element, fill, unseen, refs, name, look: undefined };
}

function setColour(element: HTMLElement, property: string, sequence: number | undefined): void {
  if (sequence === undefined) element.style.removeProperty(property);
  else element.style.setProperty(property, `var(--owner-${colourOf(sequence)})`);
}
