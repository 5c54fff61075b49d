/** The generations that answer one request. */

import type { TextEngine } from '../text-engine.js';
import type { Choice, GenerateChunk, GenerateOptions, GenerateResult, Prompt } from '../types.js';
import { inRequestTerms } from './request.js';
import type { Usage } from './types.js';

/** What comes next of one of the choices, which are numbered through all prompts. */
export type RunEvent =
  | { readonly index: number; readonly chunk: GenerateChunk }
  /** It is complete. The tail is what the chunks lack: a stop token may have cut a character off. */
  | { readonly index: number; readonly choice: Choice; readonly tail: string };

/** One run for each prompt. They end together: when one fails, the signal aborts, or nobody listens any more. */
export class Runs {
  readonly #engine: TextEngine;
  readonly #prompts: readonly Prompt[];
  readonly #options: GenerateOptions;
  readonly #signal: AbortSignal | undefined;
  readonly #controller = new AbortController();

  constructor(
    engine: TextEngine,
    prompts: readonly Prompt[],
    options: GenerateOptions,
    signal: AbortSignal | undefined,
  ) {
    this.#engine = engine;
    this.#prompts = prompts;
    this.#options = { ...options, signal: this.#controller.signal };
    this.#signal = signal;
  }

  /** The whole of them, by prompt. @throws what the first that fails throws, with parameters by the request's names */
  async results(): Promise<GenerateResult[]> {
    this.#begin();
    try {
      return await Promise.all(this.#start().map(run => run.result()));
    } catch (error) {
      throw inRequestTerms(error);
    } finally {
      this.#end();
    }
  }

  /** What any of them does, as it comes; in the end, the results. @throws as `results` does */
  async *events(): AsyncGenerator<RunEvent, readonly GenerateResult[], undefined> {
    this.#begin();
    const runs = this.#start();
    const chunks = runs.map(run => run[Symbol.asyncIterator]());
    const perPrompt = this.#options.n ?? 1;
    const lengths: number[] = [];
    const results: GenerateResult[] = [];
    const pull = async (prompt: number) => {
      const next = await chunks[prompt]?.next();
      return { prompt, chunk: next?.done ? undefined : next?.value };
    };
    const pulls = new Map(runs.map((_, prompt) => [prompt, pull(prompt)]));
    try {
      while (pulls.size > 0) {
        const { prompt, chunk } = await Promise.race(pulls.values());
        // At the end of the line, so that each run has its turn.
        pulls.delete(prompt);
        if (chunk) {
          pulls.set(prompt, pull(prompt));
          const index = prompt * perPrompt + chunk.index;
          lengths[index] = (lengths[index] ?? 0) + chunk.text.length;
          yield { index, chunk };
          continue;
        }
        const result = (await runs[prompt]?.result()) as GenerateResult;
        results[prompt] = result;
        for (const choice of result.choices) {
          const index = prompt * perPrompt + choice.index;
          yield { index, choice, tail: choice.text.slice(lengths[index] ?? 0) };
        }
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

  #start() {
    return this.#prompts.map(prompt => this.#engine.generate(prompt, this.#options));
  }

  readonly #abort = () => this.#controller.abort(this.#signal?.reason);

  #begin(): void {
    if (this.#signal?.aborted) this.#abort();
    this.#signal?.addEventListener('abort', this.#abort);
  }

  #end(): void {
    this.#signal?.removeEventListener('abort', this.#abort);
    this.#controller.abort();
  }
}

/** The usage of all runs of a request. */
export function usageOf(results: readonly GenerateResult[]): Usage {
  const sum = (part: keyof GenerateResult['usage']) =>
    results.reduce((total, { usage }) => total + usage[part], 0);
  const [prompt, completion] = [sum('prompt'), sum('completion')];
  return {
    prompt_tokens: prompt,
    completion_tokens: completion,
    total_tokens: prompt + completion,
    prompt_tokens_details: { cached_tokens: sum('cached') },
  };
}
