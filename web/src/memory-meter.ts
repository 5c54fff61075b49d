import type { Engine, MemoryReport } from 'kvasm';

/** Asks for the memory as often as tokens come, but never for two reports at a time. */
export class MemoryMeter {
  readonly #engine: Engine;
  readonly #show: (report: MemoryReport) => void;
  #asking = false;
  #again = false;
  #stopped = false;

  constructor(engine: Engine, show: (report: MemoryReport) => void) {
    this.#engine = engine;
    this.#show = show;
  }

  poll(): void {
    if (this.#asking) this.#again = true;
    else void this.#ask();
  }

  /** What is answered later tells of an engine at rest, and is not shown. */
  stop(): void {
    this.#stopped = true;
  }

  async #ask(): Promise<void> {
    this.#asking = true;
    try {
      do {
        this.#again = false;
        const report = await this.#engine.memory();
        if (!this.#stopped) this.#show(report);
      } while (this.#again && !this.#stopped);
    } catch {
      // The engine is gone, which the run that is under way tells with better words.
    }
    this.#asking = false;
  }
}
