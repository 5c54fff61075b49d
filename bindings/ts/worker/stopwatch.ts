import type { GenerateSummary } from '../protocol.js';

/** When a step of the engine began and ended, by performance.now(). */
export interface StepTime {
  readonly from: number;
  readonly to: number;
}

/** Times one generation, from when it reached the Worker. In milliseconds. */
export class Stopwatch {
  readonly #startedAt = performance.now();
  #prefill = 0;
  #draws = 0;
  #firstAt = 0;
  #lastAt = 0;

  /** Adds a step that the generation took part in. */
  add({ from, to }: StepTime, drew: boolean): void {
    if (this.#draws === 0) this.#prefill += to - from;
    if (!drew) return;
    if (this.#draws === 0) this.#firstAt = to;
    this.#lastAt = to;
    this.#draws++;
  }

  timings(): GenerateSummary['timings'] {
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
