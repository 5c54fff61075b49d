/** The generations that answer one request. */

import type { TextEngine } from '../text-engine.js';
import type { GenerateOptions, GenerateResult, Generation, Prompt } from '../types.js';
import { inRequestTerms } from './request.js';
import type { Usage } from './types.js';

/** A run's next text, or how it ended. */
export type RunEvent =
  | { readonly index: number; readonly text: string }
  | { readonly index: number; readonly result: GenerateResult; readonly tail: string };

/** Runs that end together: when one fails, when the signal aborts, or when nobody listens any more. */
export class Runs {
  readonly #runs: readonly Generation[];
  readonly #controller = new AbortController();
  readonly #signal: AbortSignal | undefined;
  readonly #perPrompt: number;

  constructor(
    engine: TextEngine,
    prompts: readonly Prompt[],
    options: readonly GenerateOptions[],
    signal: AbortSignal | undefined,
  ) {
    this.#signal = signal;
    if (signal?.aborted) this.#abort();
    signal?.addEventListener('abort', this.#abort);
    this.#perPrompt = options.length;
    this.#runs = prompts.flatMap(prompt =>
      options.map(each => engine.generate(prompt, { ...each, signal: this.#controller.signal })),
    );
  }

  /** What each has come to, in order. Throws as `events` does. */
  async results(): Promise<readonly GenerateResult[]> {
    const events = this.events();
    for (;;) {
      const next = await events.next();
      if (next.done) return next.value;
    }
  }

  /**
   * What any of them does, as it comes.
   * @throws what the first that fails throws, with parameters by the request's names
   */
  async *events(): AsyncGenerator<RunEvent, readonly GenerateResult[], undefined> {
    const results: GenerateResult[] = [];
    const events = this.#runs.map(run => run[Symbol.asyncIterator]());
    const lengths = this.#runs.map(() => 0);
    const pull = async (index: number) => {
      const next = await (events[index] as AsyncIterator<{ text: string }>).next();
      return { index, next };
    };
    const pulls = new Map(this.#runs.map((_, index) => [index, pull(index)]));
    try {
      while (pulls.size > 0) {
        const { index, next } = await Promise.race(pulls.values());
        // At the end of the line, so that each run has its turn.
        pulls.delete(index);
        if (!next.done) {
          pulls.set(index, pull(index));
          const { text } = next.value;
          lengths[index] = (lengths[index] ?? 0) + text.length;
          if (text !== '') yield { index, text };
          continue;
        }
        const result = await (this.#runs[index] as Generation).result();
        results[index] = result;
        // The chunks lack what a stop token has cut off.
        yield { index, result, tail: result.text.slice(lengths[index]) };
      }
      return results;
    } catch (error) {
      throw inRequestTerms(error);
    } finally {
      this.#end();
      // Nobody else hears of the aborted ones.
      for (const waiting of pulls.values()) waiting.catch(() => {});
    }
  }

  usage(results: readonly GenerateResult[]): Usage {
    const sum = (values: readonly number[]) => values.reduce((total, value) => total + value, 0);
    const firsts = results.filter((_, index) => index % this.#perPrompt === 0);
    const prompt = sum(firsts.map(({ usage }) => usage.prompt));
    const completion = sum(results.map(({ usage }) => usage.completion));
    return {
      prompt_tokens: prompt,
      completion_tokens: completion,
      total_tokens: prompt + completion,
      prompt_tokens_details: { cached_tokens: sum(firsts.map(({ usage }) => usage.cached)) },
    };
  }

  readonly #abort = () => this.#controller.abort(this.#signal?.reason);

  #end(): void {
    this.#signal?.removeEventListener('abort', this.#abort);
    this.#controller.abort();
  }
}
