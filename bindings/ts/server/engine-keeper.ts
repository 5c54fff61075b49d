import type { KvasmError } from '../errors.js';
import { describeThrown } from '../protocol.js';
import type { EmbeddingEngine } from '../text-engine.js';
import { HttpError } from './http-error.js';

/** An engine that tells of its end, as `Engine` does. */
export interface MortalEngine extends EmbeddingEngine {
  readonly closed: KvasmError | undefined;
  dispose(): Promise<void>;
}

/** Keeps an engine to answer by: one that has crashed is loaded anew when it is next needed. */
export class EngineKeeper {
  readonly #load: () => Promise<MortalEngine>;
  #engine: MortalEngine;
  #loading: Promise<MortalEngine> | undefined;

  /** @param load Called once at a time, after the engine has crashed. */
  constructor(engine: MortalEngine, load: () => Promise<MortalEngine>) {
    this.#engine = engine;
    this.#load = load;
  }

  /** @throws HttpError 503 when it has crashed, and cannot be loaded; the next call tries again. */
  async get(): Promise<MortalEngine> {
    if (this.#engine.closed?.code !== 'crashed') return this.#engine;
    this.#loading ??= this.#reload();
    return await this.#loading;
  }

  /** Disposes of the engine, also of one that is being loaded. */
  async dispose(): Promise<void> {
    // Whoever waits for it hears of its failure.
    await this.#loading?.catch(() => {});
    await this.#engine.dispose();
  }

  async #reload(): Promise<MortalEngine> {
    try {
      this.#engine = await this.#load();
      return this.#engine;
    } catch (error) {
      const reason = `The engine crashed, and cannot be loaded anew (${describeThrown(error)}).`;
      throw new HttpError(503, reason);
    } finally {
      this.#loading = undefined;
    }
  }
}
