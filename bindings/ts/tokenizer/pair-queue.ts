/** 2^31: above every position, as the buffers for a piece of so many bytes could not be allocated. */
const POSITIONS = 0x8000_0000;

/** Ranks must be below this, so that a rank and a position fit one double exactly: 2^22 * 2^31 = 2^53. */
export const RANK_LIMIT = 0x40_0000;

/** A binary heap of (rank, position), lowest rank first, then lowest position; each entry is one number. */
export class PairQueue {
  readonly #heap: Float64Array;
  #size = 0;
  /** Of the entry last popped. */
  rank = 0;
  /** Of the entry last popped. */
  position = 0;

  /** @param capacity How many entries it holds at most; to push more is the caller's fault and unchecked. */
  constructor(capacity: number) {
    this.#heap = new Float64Array(capacity);
  }

  get size(): number {
    return this.#size;
  }

  clear(): void {
    this.#size = 0;
  }

  push(rank: number, position: number): void {
    const heap = this.#heap;
    const key = rank * POSITIONS + position;
    let at = this.#size++;
    while (at > 0) {
      const parent = (at - 1) >> 1;
      if (heap[parent]! <= key) break;
      heap[at] = heap[parent]!;
      at = parent;
    }
    heap[at] = key;
  }

  /** Takes out the lowest entry, into `rank` and `position`; there must be one. */
  pop(): void {
    const heap = this.#heap;
    const top = heap[0]!;
    const size = --this.#size;
    const key = heap[size]!;
    let at = 0;
    for (let child = 1; child < size; child = 2 * at + 1) {
      if (child + 1 < size && heap[child + 1]! < heap[child]!) child++;
      if (heap[child]! >= key) break;
      heap[at] = heap[child]!;
      at = child;
    }
    heap[at] = key;
    this.rank = Math.floor(top / POSITIONS);
    this.position = top % POSITIONS;
  }
}
