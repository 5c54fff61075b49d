import type { Engine, GenerateResult, Generation, Session } from 'kvasm';
import type { App } from '../app.ts';
import { CachePanel } from '../cache/cache-panel.ts';
import { byId } from '../lib/dom.ts';
import { setOff } from '../state.ts';
import { RunView } from './run-view.ts';
import {
  type RunOptions,
  type RunSettings,
  randomSeed,
  SamplingControls,
} from './sampling-controls.ts';
import { TextView } from './text-view.ts';

// Alternatives that are told of each token.
const logprobs = 5;

/** Writes on a prompt, and shows the cache meanwhile. */
export class Playground {
  readonly controls = new SamplingControls();
  readonly #app: App;
  readonly #text = new TextView();
  readonly #run = new RunView();
  readonly #cache = new CachePanel();
  readonly #errors = byId('run-error', HTMLElement);
  readonly #continue = byId('continue', HTMLButtonElement);
  readonly #regenerate = byId('regenerate', HTMLButtonElement);
  #session: Session | undefined;
  /** Tokens of the session that are shown. */
  #size = 0;
  #last: RunSettings | undefined;

  constructor(app: App) {
    this.#app = app;
    app.onEngine(async engine => {
      this.#session = undefined;
      this.#offer(false);
      await this.#cache.setEngine(engine);
    });
    byId('run-form', HTMLFormElement).addEventListener('submit', event => {
      event.preventDefault();
      void this.#start(this.controls.read());
    });
    byId('stop', HTMLButtonElement).addEventListener('click', () => app.stop());
    this.#continue.addEventListener('click', () => void this.#goOn());
    this.#regenerate.addEventListener('click', () => {
      const { prompt, options } = this.#last ?? this.controls.read();
      void this.#start({ prompt, options: { ...options, seed: randomSeed() } });
    });
    this.#offer(false);
  }

  /** The prompt, and what was written after it. */
  get text(): string {
    return this.#text.whole;
  }

  async #start(settings: RunSettings): Promise<void> {
    const { prompt, options } = settings;
    await this.#job(options, async (engine, signal) => {
      this.#last = settings;
      await this.#session?.dispose();
      this.#session = undefined;
      await this.#cache.restart(options.cache);
      this.#text.start(prompt);
      if (options.cache !== 'block') {
        return engine.generate(prompt, { ...options, logprobs, signal });
      }
      // In a session, so that the blocks stay to be looked at, and the text can be continued.
      const { cache: _, ...others } = options;
      this.#session = engine.session();
      const { usage } = await this.#session.generate(prompt, { ...others, maxTokens: 0 }).result();
      this.#size = usage.prompt;
      return this.#session.generate('', { ...others, logprobs, signal });
    });
  }

  async #goOn(): Promise<void> {
    const session = this.#session;
    if (!session) return;
    const { options } = this.controls.read();
    const { cache: _, ...others } = options;
    await this.#job(options, async (_engine, signal) => {
      this.#text.resume();
      await this.#cache.goOn();
      return session.generate('', { ...others, logprobs, signal });
    });
  }

  async #job(
    options: RunOptions,
    begin: (engine: Engine, signal: AbortSignal) => Promise<Generation>,
  ): Promise<void> {
    let begun = false;
    const end = await this.#app.job({ errors: this.#errors }, async (engine, signal) => {
      begun = true;
      this.#run.start(options.seed);
      let result: GenerateResult | undefined;
      try {
        result = await this.#stream(await begin(engine, signal));
        this.#run.finished(result, options.maxTokens);
      } finally {
        this.#text.end();
        // Of a run whose cache was not in the blocks, nothing is left in the engine.
        await this.#cache.settle(options.cache === 'block' ? undefined : result?.memory);
        this.#offer(true);
      }
    });
    if (!begun) return;
    if (end === 'stopped') this.#run.stopped();
    if (end === 'failed') this.#run.failed();
  }

  async #stream(generation: Generation): Promise<GenerateResult> {
    let streamed = '';
    try {
      for await (const { token, text, logprob, topLogprobs = [] } of generation) {
        this.#text.append({ token, text, logprob, alternatives: topLogprobs });
        streamed += text;
        this.#size++;
        this.#run.token();
        this.#cache.poll();
      }
      const result = await generation.result();
      // The rest of a character that was cut off.
      this.#text.appendTail(result.text.slice(streamed.length));
      return result;
    } finally {
      await this.#forgetUnseen();
    }
  }

  /** A run that was stopped may be some tokens ahead of what is shown. */
  async #forgetUnseen(): Promise<void> {
    const session = this.#session;
    if (!session) return;
    const ids = await session.ids();
    if (ids.length > this.#size) await session.truncate(this.#size);
    else this.#size = ids.length;
  }

  /** Whether there is something to continue, or to write anew. */
  #offer(some: boolean): void {
    setOff(this.#continue, !some || !this.#session);
    setOff(this.#regenerate, !some);
  }
}
