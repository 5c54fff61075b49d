import { StreamDecoder } from '../tokenizer/stream-decoder.js';
import type { Tokenizer } from '../tokenizer/tokenizer.js';
import type { GenerateChunk } from '../types.js';
import { StopFinder } from './stop-finder.js';

/** Text that is not put out yet, with its token; without one, what the end adds. */
interface Held {
  readonly chunk: GenerateChunk | undefined;
  readonly text: string;
  /** Where in the whole text it begins. */
  readonly start: number;
}

/**
 * Makes text of one completion's tokens. Tokens that may be the beginning of a stop string, with the pieces of a character
 * that lead to it, are held back until it is clear whether they are: then they are put out as if they never had been held,
 * or never.
 */
export class Completion {
  readonly #decoder: StreamDecoder;
  readonly #finder: StopFinder | undefined;
  readonly #put: (chunk: GenerateChunk) => void;
  #held: Held[] = [];
  #length = 0;
  #tail = '';
  /** Tokens that are put out. */
  count = 0;

  constructor(tokenizer: Tokenizer, stops: readonly string[], put: (chunk: GenerateChunk) => void) {
    this.#decoder = new StreamDecoder(tokenizer);
    this.#finder = stops.length > 0 ? new StopFinder(stops) : undefined;
    this.#put = put;
  }

  /** Text that belongs to no token that was put out: U+FFFD when the end has cut a character off, else ''. */
  get tail(): string {
    return this.#tail;
  }

  /** A token of the prompt, which is put out before the completion, and is no part of it. */
  echo(token: number): string {
    return this.#decoder.push(token);
  }

  /**
   * Takes the next token; its chunk's text is still to come.
   * @param isLast Whether no more can come.
   * @returns Whether a stop string is complete. Nothing may be added then.
   */
  add(chunk: GenerateChunk, isLast: boolean): boolean {
    const text = this.#decoder.push(chunk.token) + (isLast ? this.#decoder.flush() : '');
    return this.#take(chunk, text, isLast);
  }

  /** Ends the completion without another token. @returns As of `add`. */
  end(): boolean {
    return this.#take(undefined, this.#decoder.flush(), true);
  }

  #take(chunk: GenerateChunk | undefined, text: string, isLast: boolean): boolean {
    this.#held.push({ chunk, text, start: this.#length });
    this.#length += text.length;
    const stop = this.#finder?.push(text);
    if (stop !== undefined) {
      this.#release(({ start, text }) => text !== '' && start < stop, stop);
      this.#held = [];
      return true;
    }
    const safe = this.#length - (this.#finder?.pending ?? 0);
    // Without stop strings even a token without text need not wait.
    const needsText = this.#finder !== undefined && !isLast;
    this.#release(({ start, text }) => {
      return isLast || (start + text.length <= safe && !(needsText && text === ''));
    }, this.#length);
    return false;
  }

  /** Puts out all up to the last that may go, cut at `end`. */
  #release(mayGo: (held: Held) => boolean, end: number): void {
    const count = this.#held.findLastIndex(mayGo) + 1;
    for (const { chunk, text, start } of this.#held.splice(0, count)) {
      const kept = text.slice(0, Math.max(0, end - start));
      if (!chunk) {
        this.#tail = kept;
        continue;
      }
      this.count++;
      this.#put({ ...chunk, text: kept });
    }
  }
}
