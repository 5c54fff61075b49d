import type { CacheStrategy, GenerateOptions, Overflow } from 'kvasm';
import { byId } from '../lib/dom.ts';

const cacheHints: Record<CacheStrategy, string> = {
  block: 'Keys and values stay in memory that was reserved once.',
  concat: 'The cache is made anew and copied at each token, as textbooks do.',
  none: 'No cache: all of the text is computed anew for each token.',
};

export type RunOptions = Required<
  Pick<
    GenerateOptions,
    | 'maxTokens'
    | 'temperature'
    | 'topK'
    | 'topP'
    | 'minP'
    | 'repetitionPenalty'
    | 'seed'
    | 'cache'
    | 'overflow'
  >
>;

/** What a run is asked for; the form itself has checked the ranges. */
export interface RunSettings {
  readonly prompt: string;
  readonly options: RunOptions;
}

export class SamplingControls {
  readonly #prompt = byId('prompt', HTMLTextAreaElement);
  readonly #maxTokens = byId('max-tokens', HTMLInputElement);
  readonly #temperature = byId('temperature', HTMLInputElement);
  readonly #topK = byId('top-k', HTMLInputElement);
  readonly #topP = byId('top-p', HTMLInputElement);
  readonly #minP = byId('min-p', HTMLInputElement);
  readonly #repetitionPenalty = byId('repetition-penalty', HTMLInputElement);
  readonly #seed = byId('seed', HTMLInputElement);
  readonly #cache = byId('cache-strategy', HTMLSelectElement);
  readonly #overflow = byId('overflow', HTMLSelectElement);

  constructor() {
    this.#cache.addEventListener('change', () => this.#showHint());
    // What is closed cannot be focused, and so not be complained about.
    const more = byId('more-options', HTMLDetailsElement);
    more.addEventListener('invalid', () => more.setAttribute('open', ''), true);
    // In a text field of several lines Enter is taken.
    this.#prompt.addEventListener('keydown', event => {
      if (event.key !== 'Enter' || !(event.ctrlKey || event.metaKey)) return;
      event.preventDefault();
      this.#prompt.form?.requestSubmit();
    });
    this.#showHint();
  }

  read(): RunSettings {
    return {
      prompt: this.#prompt.value,
      options: {
        maxTokens: this.#maxTokens.valueAsNumber,
        temperature: this.#temperature.valueAsNumber,
        topK: this.#topK.valueAsNumber,
        topP: this.#topP.valueAsNumber,
        minP: this.#minP.valueAsNumber,
        repetitionPenalty: this.#repetitionPenalty.valueAsNumber,
        // Drawn here, so that the page can tell it, and the run be repeated.
        seed: this.#seed.value === '' ? randomSeed() : this.#seed.valueAsNumber,
        cache: this.#strategy(),
        overflow: this.#overflow.value as Overflow,
      },
    };
  }

  #strategy(): CacheStrategy {
    return this.#cache.value as CacheStrategy;
  }

  #showHint(): void {
    byId('cache-hint', HTMLElement).textContent = cacheHints[this.#strategy()];
  }
}

/** Short enough to be read out and typed. */
export function randomSeed(): number {
  const [bits = 0] = crypto.getRandomValues(new Uint32Array(1));
  return bits % 1_000_000;
}
