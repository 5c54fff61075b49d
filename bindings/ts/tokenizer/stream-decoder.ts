import type { DecodeOptions, Tokenizer } from './tokenizer.js';

/**
 * Turns ids that arrive one by one into text. A character may span several tokens: its bytes wait here until
 * the last of them is there, so that no half of one is ever seen as U+FFFD. All that `push` and `flush`
 * return, joined, equals `tokenizer.decode` of all the ids with the same options.
 */
export class StreamDecoder {
  readonly #tokenizer: Tokenizer;
  readonly #skipSpecial: boolean;
  readonly #utf8 = new TextDecoder('utf-8', { ignoreBOM: true });

  constructor(tokenizer: Tokenizer, { skipSpecial = false }: DecodeOptions = {}) {
    this.#tokenizer = tokenizer;
    this.#skipSpecial = skipSpecial;
  }

  /**
   * Takes the next id and returns the characters that it completes, '' when there are none yet. Bytes that
   * cannot become a character any more come out as U+FFFD.
   *
   * Throws an InvalidArgumentError for an id that is not in the vocabulary; the decoder then goes on as if
   * it had not been pushed.
   */
  push(id: number): string {
    const bytes = this.#tokenizer.tokenBytes(id);
    if (this.#skipSpecial && this.#tokenizer.isSpecial(id)) return '';
    return this.#utf8.decode(bytes, { stream: true });
  }

  /** Ends the sequence: returns U+FFFD for a character left incomplete, else ''. The decoder is then as new. */
  flush(): string {
    return this.#utf8.decode();
  }
}
