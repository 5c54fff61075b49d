import type { LoadProgress } from '../types.js';

// A bar needs no more, and each report wakes the page.
const millisecondsApart = 50;

/** Tells how far one file is: at its start, at its end, and now and then in between. */
export class FileProgress {
  readonly #phase: LoadProgress['phase'];
  readonly #report: (progress: LoadProgress) => void;
  #total: number | undefined;
  #loaded = 0;
  #reportedAt: number;

  constructor(
    phase: LoadProgress['phase'],
    total: number | undefined,
    report: (progress: LoadProgress) => void,
  ) {
    this.#phase = phase;
    this.#total = total;
    this.#report = report;
    this.#reportedAt = performance.now();
    report({ phase, loaded: 0, total });
  }

  /** Once the file itself has said how long it is. */
  expect(total: number): void {
    this.#total = total;
  }

  add(byteCount: number): void {
    this.#loaded += byteCount;
    // A total that is exceeded was wrong, and there is no better one.
    if (this.#total !== undefined && this.#loaded > this.#total) this.#total = undefined;
    const now = performance.now();
    if (now - this.#reportedAt < millisecondsApart) return;
    this.#reportedAt = now;
    this.#report({ phase: this.#phase, loaded: this.#loaded, total: this.#total });
  }

  finish(): void {
    this.#report({ phase: this.#phase, loaded: this.#loaded, total: this.#loaded });
  }
}
