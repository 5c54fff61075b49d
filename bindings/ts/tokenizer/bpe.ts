import { PairQueue } from './pair-queue.js';

/** Two neighbours that become one token. */
export interface Merge {
  left: number;
  right: number;
  result: number;
}

const NONE = -1;

// Pieces up to this many bytes share one set of buffers; what a longer one needs is given back after it.
const SHARED_CAPACITY = 1024;

/** The symbols of a piece as a doubly linked list in arrays, each with the rank of its pair with the next. */
class Symbols {
  readonly id: Int32Array;
  readonly previous: Int32Array;
  readonly next: Int32Array;
  readonly rank: Int32Array;
  readonly queue: PairQueue;

  constructor(capacity: number) {
    this.id = new Int32Array(capacity);
    this.previous = new Int32Array(capacity);
    this.next = new Int32Array(capacity);
    this.rank = new Int32Array(capacity);
    // A merge takes one pair out and puts in two at most, and there are fewer merges than symbols.
    this.queue = new PairQueue(2 * capacity);
  }
}

/**
 * Byte pair encoding (Sennrich et al. 2016; on bytes, Radford et al. 2019) of one piece: while any two
 * neighbours have a merge, the pair of the lowest rank is merged, the leftmost first among equals.
 * Takes O(n log n) for a piece of n bytes.
 */
export class BytePairEncoder {
  readonly #byteIds: Int32Array;
  readonly #ranks = new Map<number, number>();
  readonly #results: Int32Array;
  readonly #shared = new Symbols(SHARED_CAPACITY);
  /** More than any id, so that `left * base + right` is another number for every pair. */
  readonly #base: number;

  /**
   * @param byteIds The id of each byte's token, 256 of them.
   * @param merges In order of rank. Of two merges of the same pair the later counts, as in Hugging Face's reader.
   * @param vocabSize Above every id.
   */
  constructor(byteIds: Int32Array, merges: readonly Merge[], vocabSize: number) {
    this.#byteIds = byteIds;
    this.#base = vocabSize;
    this.#results = Int32Array.from(merges, merge => merge.result);
    for (const [rank, { left, right }] of merges.entries()) {
      this.#ranks.set(left * vocabSize + right, rank);
    }
  }

  /** Appends the ids of the piece with these bytes to `out`. */
  encode(bytes: Uint8Array, out: number[]): void {
    const count = bytes.length;
    const symbols = count <= SHARED_CAPACITY ? this.#shared : new Symbols(count);
    const { id, next } = symbols;
    for (let i = 0; i < count; i++) {
      id[i] = this.#byteIds[bytes[i]!]!;
      symbols.previous[i] = i - 1;
      next[i] = i + 1 < count ? i + 1 : NONE;
    }
    this.#merge(symbols, count);
    if (count > 0) for (let i = 0; i !== NONE; i = next[i]!) out.push(id[i]!);
  }

  #merge(symbols: Symbols, count: number): void {
    const { id, previous, next, rank, queue } = symbols;
    queue.clear();
    for (let i = 0; i < count; i++) this.#rankPair(symbols, i);

    while (queue.size > 0) {
      queue.pop();
      const at = queue.position;
      // One of the two has been merged with its other neighbour since.
      if (rank[at] !== queue.rank) continue;
      const gone = next[at]!;
      const after = next[gone]!;
      id[at] = this.#results[queue.rank]!;
      rank[gone] = NONE;
      next[at] = after;
      if (after !== NONE) previous[after] = at;
      this.#rankPair(symbols, at);
      if (previous[at] !== NONE) this.#rankPair(symbols, previous[at]!);
    }
  }

  #rankPair({ id, next, rank, queue }: Symbols, at: number): void {
    const right = next[at]!;
    const found = right === NONE ? undefined : this.#ranks.get(id[at]! * this.#base + id[right]!);
    rank[at] = found ?? NONE;
    if (found !== undefined) queue.push(found, at);
  }
}
