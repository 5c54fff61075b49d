import type { CacheView, Engine, MemoryReport } from 'kvasm';
import { type CacheEvent, cacheEvents } from './cache-events.ts';
import { describeEvents } from './describe-event.ts';

/** The cache at one moment, and what has happened since the moment before. */
export interface CacheMoment {
  readonly view: CacheView;
  readonly memory: MemoryReport;
  /** Keys that a token sees; undefined for all. */
  readonly window: number | undefined;
  readonly events: readonly CacheEvent[];
  /** The events in one line; that of the moment before where nothing has happened. */
  readonly line: string;
}

// So that each token of a fast run is seen, and a page that lags does not pile questions up.
const mostQuestions = 8;

/** Looks at an engine's cache as often as it is told to. */
export class CacheWatch {
  readonly #engine: Engine;
  readonly #onMoment: (moment: CacheMoment) => void;
  #last: CacheMoment | undefined;
  #questions = 0;
  #again = false;

  constructor(engine: Engine, onMoment: (moment: CacheMoment) => void) {
    this.#engine = engine;
    this.#onMoment = onMoment;
  }

  /** Something may have changed. */
  poll(): void {
    if (this.#questions >= mostQuestions) this.#again = true;
    else void this.#look();
  }

  /** Resolves once what is there now was looked at. */
  settle(): Promise<void> {
    this.#again = false;
    return this.#look();
  }

  /** Never rejects: whoever runs the engine tells of its end. */
  async #look(): Promise<void> {
    this.#questions++;
    try {
      const [view, memory] = await Promise.all([this.#engine.cacheView(), this.#engine.memory()]);
      this.#tell(view, memory);
    } catch {
      // The engine is gone.
    }
    this.#questions--;
    if (!this.#again) return;
    this.#again = false;
    this.poll();
  }

  #tell(view: CacheView, memory: MemoryReport): void {
    const events = this.#last ? cacheEvents(this.#last.view, view) : [];
    const line = describeEvents(events) || this.#last?.line || '';
    this.#last = { view, memory, window: this.#engine.info.window, events, line };
    this.#onMoment(this.#last);
  }
}
