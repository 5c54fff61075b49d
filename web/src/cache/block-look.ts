import type { CacheBlock, CacheView } from 'kvasm';

/** Colours that owners are told apart by; more owners than this begin anew. */
export const ownerColours = 6;

/** How a block is drawn. */
export interface BlockLook {
  readonly id: number;
  /** `cached`: only the prefix tree holds it. */
  readonly kind: 'free' | 'used' | 'cached';
  /** Sequences that hold it, the lowest first. */
  readonly owners: readonly number[];
  /** Tokens in it, 0 to blockTokens. */
  readonly filled: number;
  /** Of those, how many of the first are out of every later token's sight. */
  readonly unseen: number;
  readonly refs: number;
  readonly inPrefixTree: boolean;
}

/** @param window Keys that a token sees; undefined for all. */
export function blockLooks(view: CacheView, window?: number): BlockLook[] {
  const sizes = new Map(view.sequences.map(({ id, tokens }) => [id, tokens]));
  return view.blocks.map(block => blockLook(block, sizes, window));
}

function blockLook(
  { id, refs, filled, inPrefixTree, owners }: CacheBlock,
  sizes: ReadonlyMap<number, number>,
  window: number | undefined,
): BlockLook {
  const sequences = owners.map(owner => owner.sequence).sort((a, b) => a - b);
  const unseen = owners.map(({ sequence, first }) => {
    const next = sizes.get(sequence) ?? 0;
    const firstSeen = window === undefined ? 0 : next - window + 1;
    return Math.min(Math.max(firstSeen - first, 0), filled);
  });
  return {
    id,
    kind: refs === 0 ? 'free' : owners.length > 0 ? 'used' : 'cached',
    owners: sequences,
    filled,
    unseen: unseen.length > 0 ? Math.min(...unseen) : 0,
    refs,
    inPrefixTree,
  };
}

export function sameLook(a: BlockLook | undefined, b: BlockLook): boolean {
  return (
    a !== undefined &&
    a.kind === b.kind &&
    a.filled === b.filled &&
    a.unseen === b.unseen &&
    a.refs === b.refs &&
    a.inPrefixTree === b.inPrefixTree &&
    a.owners.length === b.owners.length &&
    a.owners.every((owner, index) => owner === b.owners[index])
  );
}

/** 0 to ownerColours - 1: the same for a sequence as long as it lives. */
export function colourOf(sequence: number): number {
  return (sequence - 1) % ownerColours;
}

/** In words, for whoever points at it or has it read out. */
export function describeLook(look: BlockLook, blockTokens: number): string {
  const { id, kind, owners, filled, unseen, refs, inPrefixTree } = look;
  if (kind === 'free') return `Block ${id}: free.`;
  if (kind === 'cached') {
    return `Block ${id}: ${filled} of ${blockTokens} tokens of an earlier run, kept in the prefix tree for prompts that begin alike.`;
  }
  const who =
    owners.length === 1
      ? `sequence ${owners[0]}`
      : `sequences ${owners.join(', ')}, which share it`;
  const parts = [`Block ${id}: ${filled} of ${blockTokens} tokens of ${who}.`];
  if (unseen > 0) {
    parts.push(
      unseen === filled
        ? 'All are out of the window.'
        : `The first ${unseen} ${unseen === 1 ? 'is' : 'are'} out of the window.`,
    );
  }
  if (inPrefixTree) parts.push('In the prefix tree.');
  parts.push(`${refs} reference${refs === 1 ? '' : 's'}.`);
  return parts.join(' ');
}

/**
 * The corners of the area that holds the first `count` of the places in a block, row by row; in per cent, as clip-path has
 * them.
 */
export function firstPlaces(count: number, columns: number, rows: number): string {
  const [width, height] = [100 / columns, 100 / rows];
  const full = Math.floor(count / columns) * height;
  const rest = (count % columns) * width;
  const below = rest > 0 ? full + height : full;
  const corners = [
    [0, 0],
    [100, 0],
    [100, full],
    [rest, full],
    [rest, below],
    [0, below],
  ];
  return `polygon(${corners.map(([x, y]) => `${x}% ${y}%`).join(', ')})`;
}
