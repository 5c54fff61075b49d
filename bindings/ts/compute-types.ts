/** What the methods of an engine take that compute something about a text. */
export interface ComputeOptions {
  /** Read control tokens such as `<|endoftext|>` that a text spells out. Default false. */
  allowSpecial?: boolean;
  /** Ends the computation between chunks of the prompt; the promise then rejects with the signal's reason. */
  signal?: AbortSignal;
}

/** Options of `Engine.logits`. */
export interface LogitsOptions extends ComputeOptions {
  /** Whether to give the logits after each token rather than those after the last. Default false. */
  all?: boolean;
}

/** What becomes of the hidden states of several tokens: their mean, or the last one alone. */
export type Pooling = 'mean' | 'last';

/** Options of `Engine.embed`. */
export interface EmbedOptions extends ComputeOptions {
  /** Default `mean`. */
  pooling?: Pooling;
}

/** A token of a text, and how likely it is after those before it. */
export interface ScoredToken {
  /** Its id. */
  readonly token: number;
  /** The token alone, with U+FFFD for a part of a character. */
  readonly text: string;
  /** The natural logarithm of its probability; undefined for the first token, before which there is nothing. */
  readonly logprob: number | undefined;
}

/** What `Engine.score` tells. */
export interface TextScore {
  /** All tokens of the text. */
  readonly tokens: readonly ScoredToken[];
  /** The sum of their `logprob`. */
  readonly total: number;
  /** exp(-total / number of tokens that have a `logprob`); undefined for a text of one token. */
  readonly perplexity: number | undefined;
}

/** The model's tokenizer, which is in the Worker. */
export interface EngineTokenizer {
  /** How many ids it has: the highest and 1. */
  readonly vocabSize: number;
  /**
   * The ids of a text. The empty text has none.
   * @throws InvalidArgumentError, EngineClosedError
   */
  encode(text: string, options?: Pick<ComputeOptions, 'allowSpecial'>): Promise<Int32Array>;
  /**
   * The text that ids spell, with U+FFFD for bytes that make no character. `skipSpecial` leaves control tokens such as
   * `<|endoftext|>` out; by default they come out as their text.
   * @throws InvalidArgumentError for an id that the tokenizer does not have; EngineClosedError
   */
  decode(ids: ArrayLike<number>, options?: { readonly skipSpecial?: boolean }): Promise<string>;
}
