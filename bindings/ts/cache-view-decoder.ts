/** Makes objects of what WasmEngine.cacheView lays out in numbers. */

import type { CacheBlock, CacheOwner, CacheSequence, CacheView } from './cache-view.js';

export function decodeCacheView(numbers: Int32Array): CacheView {
  return readView(new Reader(numbers), undefined);
}

/**
 * @param numbers Views, one after the other.
 * @param before The view before them. What is the same in a view and in the one before it is one object, so that a long
 *   row of views takes little memory, and a difference is found fast.
 */
export function decodeCacheViews(numbers: Int32Array, before?: CacheView): CacheView[] {
  const reader = new Reader(numbers);
  const views: CacheView[] = [];
  for (let last = before; !reader.atEnd; views.push(last)) last = readView(reader, last);
  return views;
}

class Reader {
  readonly #numbers: Int32Array;
  #at = 0;

  constructor(numbers: Int32Array) {
    this.#numbers = numbers;
  }

  get atEnd(): boolean {
    return this.#at >= this.#numbers.length;
  }

  next(): number {
    return this.#numbers[this.#at++] ?? 0;
  }

  take(count: number): Int32Array {
    this.#at += count;
    return this.#numbers.subarray(this.#at - count, this.#at);
  }
}

function readView(reader: Reader, before: CacheView | undefined): CacheView {
  const [blockCount, blockTokens, copies] = [reader.next(), reader.next(), reader.next()];
  const states = reader.take(3 * blockCount);
  const earlier = new Map(before?.sequences.map(sequence => [sequence.id, sequence]));
  const sequences = Array.from({ length: reader.next() }, () => readSequence(reader, earlier));
  const owners = newOwners(earlier, sequences, blockTokens);
  const blocks = readBlocks(states, owners, before?.blocks);
  return { blockTokens, copies, blocks, sequences };
}

function readSequence(reader: Reader, earlier: ReadonlyMap<number, CacheSequence>): CacheSequence {
  const [id, tokens, length] = [reader.next(), reader.next(), reader.next()];
  const numbers = reader.take(length);
  const was = earlier.get(id);
  const isSameTable =
    was?.table.length === length && was.table.every((block, index) => block === numbers[index]);
  if (was?.tokens === tokens && isSameTable) return was;
  return { id, tokens, table: was && isSameTable ? was.table : Array.from(numbers) };
}

/** The owners of the blocks in which they have changed. */
function newOwners(
  earlier: ReadonlyMap<number, CacheSequence>,
  sequences: readonly CacheSequence[],
  blockTokens: number,
): ReadonlyMap<number, readonly CacheOwner[]> {
  const owners = new Map<number, CacheOwner[]>();
  const change = (block: number | undefined) => {
    if (block !== undefined && block >= 0) owners.set(block, []);
  };
  const gone = new Map(earlier);
  for (const sequence of sequences) {
    const was = gone.get(sequence.id);
    gone.delete(sequence.id);
    if (was === sequence) continue;
    const length = Math.max(sequence.table.length, was?.table.length ?? 0);
    for (let index = 0; index < length; index++) {
      const [block, old] = [sequence.table[index], was?.table[index]];
      const filled = filledAt(sequence, index, blockTokens);
      if (block === old && was && filled === filledAt(was, index, blockTokens)) continue;
      change(block);
      change(old);
    }
  }
  for (const { table } of gone.values()) for (const block of table) change(block);
  if (owners.size === 0) return owners;
  for (const sequence of sequences) {
    for (const [index, block] of sequence.table.entries()) {
      const filled = filledAt(sequence, index, blockTokens);
      owners.get(block)?.push({ sequence: sequence.id, first: index * blockTokens, filled });
    }
  }
  return owners;
}

function readBlocks(
  states: Int32Array,
  newOwners: ReadonlyMap<number, readonly CacheOwner[]>,
  before: readonly CacheBlock[] = [],
): readonly CacheBlock[] {
  let blocks: CacheBlock[] | undefined;
  for (let id = 0; 3 * id < states.length; id++) {
    const [refs = 0, known = 0, lastUse = 0] = [
      states[3 * id],
      states[3 * id + 1],
      states[3 * id + 2],
    ];
    const was = before[id];
    const owners = newOwners.get(id) ?? was?.owners ?? [];
    let filled = known;
    for (const owner of owners) filled = Math.max(filled, owner.filled);
    const block = { id, refs, filled, inPrefixTree: known > 0, lastUse, owners };
    if (was && isSameBlock(was, block)) continue;
    blocks ??= [...before];
    blocks[id] = block;
  }
  return blocks ?? before;
}

function isSameBlock(one: CacheBlock, other: CacheBlock): boolean {
  return (
    one.owners === other.owners &&
    one.refs === other.refs &&
    one.filled === other.filled &&
    one.inPrefixTree === other.inPrefixTree &&
    one.lastUse === other.lastUse
  );
}

/** The tokens of a sequence in a block of its table. */
function filledAt({ tokens }: CacheSequence, index: number, blockTokens: number): number {
  return Math.max(0, Math.min(blockTokens, tokens - index * blockTokens));
}
