import type { GenerateResult } from '../types.js';

/** Times one generation, from when it reached the Worker. In milliseconds. */
export class Stopwatch {
  readonly #startedAt = performance.now();
  #prefill = 0;
  #draws = 0;
  #firstAt = 0;
  #lastAt = 0;

  /** Runs one step; its result says whether a token was drawn. */
  time(step: () => number, isDraw: (result: number) => boolean): number {
    const before = performance.now();
    const result = step();
    const after = performance.now();
    if (this.#draws === 0) this.#prefill += after - before;
    if (isDraw(result)) {
      if (this.#draws === 0) this.#firstAt = after;
      this.#lastAt = after;
      this.#draws++;
    }
    return result;
  }

  timings(): GenerateResult['timings'] {
    const decode = this.#lastAt - this.#firstAt;
    return {
      prefill: this.#prefill,
      firstToken: this.#draws > 0 ? this.#firstAt - this.#startedAt : 0,
      decode,
      total: performance.now() - this.#startedAt,
      // A clock that is too coarse to see the decode gives no rate.
      tokensPerSecond: decode > 0 ? (1000 * (this.#draws - 1)) / decode : undefined,
    };
  }
}
