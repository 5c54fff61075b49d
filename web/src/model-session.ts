import { Engine, type LoadProgress } from 'kvasm';
import type { ModelChoice } from './model-picker.ts';

/** The one engine of the page. */
export class ModelSession {
  #engine: Engine | undefined;
  #loading: AbortController | undefined;

  get engine(): Engine | undefined {
    return this.#engine;
  }

  /** Undefined when `abort` was called. What was loaded before is gone either way. */
  async load(
    choice: ModelChoice,
    onProgress: (progress: LoadProgress) => void,
  ): Promise<Engine | undefined> {
    // First, because the memory may not suffice for two.
    await this.unload();
    const loading = new AbortController();
    this.#loading = loading;
    try {
      this.#engine = await Engine.load(choice.source, { signal: loading.signal, onProgress });
      return this.#engine;
    } catch (error) {
      if (loading.signal.aborted) return undefined;
      throw error;
    } finally {
      this.#loading = undefined;
    }
  }

  abort(): void {
    this.#loading?.abort();
  }

  async unload(): Promise<void> {
    const engine = this.#engine;
    this.#engine = undefined;
    await engine?.dispose();
  }
}
