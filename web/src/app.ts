import { type Engine, EngineClosedError } from 'kvasm';
import { byId } from './lib/dom.ts';
import { explain, hideExplanation, showExplanation } from './lib/explain.ts';
import { EngineHolder } from './model/engine-holder.ts';
import type { EngineSettings } from './model/engine-settings.ts';
import { LoadView } from './model/load-view.ts';
import type { ModelChoice, ModelPicker } from './model/model-picker.ts';
import { showState } from './state.ts';

/** How a job ended. */
export type JobEnd = 'done' | 'stopped' | 'failed';

export interface JobOptions {
  /** How the engine has to be loaded; default: as the page's own controls say. */
  readonly settings?: EngineSettings;
  /** Where errors are told. */
  readonly errors: HTMLElement;
  /** Another model than the one chosen. */
  readonly model?: ModelChoice;
}

/** The page's one engine, and the one job that it does at a time. */
export class App {
  readonly picker: ModelPicker;
  readonly #holder = new EngineHolder();
  readonly #loadView = new LoadView();
  readonly #listeners: ((engine: Engine | undefined) => void | Promise<void>)[] = [];
  #running: AbortController | undefined;

  constructor(picker: ModelPicker) {
    this.picker = picker;
  }

  get engine(): Engine | undefined {
    return this.#holder.engine;
  }

  /** Of what is loaded. */
  get modelName(): string | undefined {
    return this.#holder.choice?.name;
  }

  get busy(): boolean {
    return this.#running !== undefined;
  }

  /** Told of each engine before it is used, and of its end. */
  onEngine(listener: (engine: Engine | undefined) => void | Promise<void>): void {
    this.#listeners.push(listener);
  }

  /** Loads what is chosen, whatever is loaded now. */
  async loadChosen(): Promise<void> {
    const choice = this.picker.choice();
    if ('missing' in choice) this.#loadView.refused({ sentence: choice.missing, detail: '' });
    else await this.#load(choice, this.picker.settings());
  }

  abortLoad(): void {
    this.#holder.abort();
  }

  async unload(): Promise<void> {
    await this.#holder.unload();
    await this.#tell(undefined);
    this.#loadView.unloaded();
    showState('empty');
  }

  /**
   * Does a job with an engine that is loaded as it needs to be; does nothing while another is under way. Never throws: errors
   * are told to the person.
   */
  async job(
    { settings, errors, model }: JobOptions,
    work: (engine: Engine, signal: AbortSignal) => Promise<void>,
  ): Promise<JobEnd | undefined> {
    if (this.#running) return undefined;
    const running = new AbortController();
    this.#running = running;
    hideExplanation(errors);
    try {
      const engine = await this.#engineFor(model, settings);
      if (!engine) return undefined;
      showState('generating');
      await work(engine, running.signal);
      return running.signal.aborted ? 'stopped' : 'done';
    } catch (error) {
      if (running.signal.aborted) return 'stopped';
      showExplanation(errors, explain(error));
      if (error instanceof EngineClosedError) await this.unload();
      return 'failed';
    } finally {
      this.#running = undefined;
      showState(this.engine ? 'ready' : 'empty');
    }
  }

  /** Ends the job, if there is one. */
  stop(): void {
    this.#running?.abort();
    this.#holder.abort();
  }

  async #engineFor(
    model: ModelChoice | undefined,
    settings: EngineSettings | undefined,
  ): Promise<Engine | undefined> {
    const choice = model ?? this.picker.choice();
    if ('missing' in choice) {
      this.#loadView.refused({ sentence: choice.missing, detail: '' });
      return undefined;
    }
    const wanted = settings ?? this.picker.settings();
    if (this.#holder.has(choice, wanted)) return this.engine;
    return await this.#load(choice, wanted);
  }

  async #load(choice: ModelChoice, settings: EngineSettings): Promise<Engine | undefined> {
    showState('loading');
    await this.#tell(undefined);
    const noise = byId('noise-badge', HTMLElement);
    noise.hidden = true;
    this.#loadView.start(choice.name);
    try {
      const engine = await this.#holder.load(choice, settings, progress =>
        this.#loadView.progress(progress),
      );
      if (engine) {
        await this.#tell(engine);
        this.#loadView.ready(choice.name, engine.info);
        noise.hidden = !choice.random;
      } else {
        this.#loadView.aborted();
      }
    } catch (error) {
      await this.#holder.unload();
      this.#loadView.failed(explain(error));
    }
    showState(this.engine ? 'ready' : 'empty');
    return this.engine;
  }

  async #tell(engine: Engine | undefined): Promise<void> {
    for (const listener of this.#listeners) await listener(engine);
  }
}
