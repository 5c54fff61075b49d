import type { LoadProgress } from '../types.js';

// A bar needs no more, and each report wakes the page.
const millisecondsApart = 50;

export type Report = (progress: LoadProgress) => void;

interface Progress {
  loaded: number;
  total: number | undefined;
}

/** How far a load is, over all of its files. */
export class LoadTracker {
  readonly #report: Report;
  readonly #files = new Map<string, Progress>();
  /** The sizes of files to come; undefined while it is not known which those are. */
  #toCome: Map<string, number | undefined> | undefined;

  constructor(report: Report) {
    this.#report = report;
  }

  /** Says which files are still to be read, and how long they are. */
  expect(files: Iterable<readonly [name: string, size: number | undefined]>): void {
    this.#toCome = new Map(files);
  }

  /** A file that is read, perhaps for the second time. */
  file(phase: LoadProgress['phase'], name: string, total: number | undefined): FileProgress {
    this.#toCome?.delete(name);
    const progress: Progress = { loaded: 0, total };
    this.#files.set(name, progress);
    return new FileProgress(progress, () => {
      const { loaded, total } = progress;
      this.#report({ phase, file: name, loaded, total, overall: this.#overall() });
    });
  }

  ready(weightsBytes: number): void {
    const overall = this.#overall();
    const all = { loaded: overall.loaded, total: overall.loaded };
    const loaded = weightsBytes;
    this.#report({ phase: 'ready', file: undefined, loaded, total: loaded, overall: all });
  }

  #overall(): LoadProgress['overall'] {
    let loaded = 0;
    let total: number | undefined = 0;
    for (const file of this.#files.values()) loaded += file.loaded;
    const sizes = [...this.#files.values()].map(file => file.total);
    for (const size of [...sizes, ...(this.#toCome?.values() ?? [undefined])]) {
      total = total === undefined || size === undefined ? undefined : total + size;
    }
    return { loaded, total };
  }
}

/** Tells how far one file is: at its start, at its end, and now and then in between. */
export class FileProgress {
  readonly #progress: Progress;
  readonly #report: () => void;
  #reportedAt = performance.now();

  constructor(progress: Progress, report: () => void) {
    this.#progress = progress;
    this.#report = report;
    report();
  }

  /** Once the file itself has said how long it is. */
  expect(total: number): void {
    this.#progress.total = total;
  }

  add(byteCount: number): void {
    const progress = this.#progress;
    progress.loaded += byteCount;
    // A total that is exceeded was wrong, and there is no better one.
    if (progress.total !== undefined && progress.loaded > progress.total) {
      progress.total = undefined;
    }
    const now = performance.now();
    if (now - this.#reportedAt < millisecondsApart) return;
    this.#reportedAt = now;
    this.#report();
  }

  finish(): void {
    this.#progress.total = this.#progress.loaded;
    this.#report();
  }
}
