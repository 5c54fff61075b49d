import { Engine, type LoadProgress } from 'kvasm';
import { type EngineSettings, sameSettings } from './engine-settings.ts';
import type { ModelChoice } from './model-picker.ts';

/** The one engine of the page: there may be no memory for two. */
export class EngineHolder {
  #engine: Engine | undefined;
  #choice: ModelChoice | undefined;
  #settings: EngineSettings = {};
  #loading: AbortController | undefined;

  get engine(): Engine | undefined {
    return this.#engine;
  }

  /** What the engine was loaded from. */
  get choice(): ModelChoice | undefined {
    return this.#engine && this.#choice;
  }

  /** Whether what is loaded is this already. */
  has(choice: ModelChoice, settings: EngineSettings): boolean {
    return this.choice?.key === choice.key && sameSettings(this.#settings, settings);
  }

  /** Undefined when `abort` was called. What was loaded before is gone either way. */
  async load(
    choice: ModelChoice,
    settings: EngineSettings,
    onProgress: (progress: LoadProgress) => void,
  ): Promise<Engine | undefined> {
    await this.unload();
    const loading = new AbortController();
    this.#loading = loading;
    const { signal } = loading;
    try {
      this.#engine = await Engine.load(choice.source, { ...settings, signal, onProgress });
      this.#choice = choice;
      this.#settings = settings;
      return this.#engine;
    } catch (error) {
      if (signal.aborted) return undefined;
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
