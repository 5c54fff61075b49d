import { make } from '../lib/dom.ts';

const entries: readonly [key: string, text: string][] = [
  ['token', 'a token; one colour for each sequence'],
  ['shared', 'shared: ×2 is two holders'],
  ['tree', 'in the prefix tree, for prompts that begin alike'],
  ['unseen', 'out of the window'],
  ['evicted', 'just evicted, slid out or copied'],
  ['free', 'free'],
];

/** What the looks of a block mean. */
export function makeLegend(): HTMLElement {
  return make(
    'ul',
    { class: 'legend', 'aria-label': 'Legend' },
    ...entries.map(([key, text]) =>
      make(
        'li',
        {},
        make('span', { class: `legend-key legend-${key}`, 'aria-hidden': 'true' }),
        text,
      ),
    ),
  );
}
