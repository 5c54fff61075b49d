import type { EmbedOptions, EngineTokenizer } from './compute-types.js';
import type { GenerateOptions, Generation, Prompt } from './types.js';

/** What other APIs are laid over: an `Engine`, or something that does its part of one. */
export interface TextEngine {
  /** As `Engine.generate`. */
  generate(prompt: Prompt, options?: GenerateOptions): Generation;
  /** A part of what `Engine.info` tells. */
  readonly info: {
    /** The end-of-text id, if there is one. */
    readonly endOfText: number | undefined;
    /** The WebAssembly build in use. */
    readonly variant: string;
  };
}

/** What can also tell of a text: an `Engine`, or something that does its part of one. */
export interface EmbeddingEngine extends TextEngine {
  /** As `Engine.embed`. */
  embed(prompt: Prompt, options?: EmbedOptions): Promise<Float32Array>;
  /** As of `Engine.tokenizer`. */
  readonly tokenizer: Pick<EngineTokenizer, 'encode'>;
  /** A part of what `Engine.info` tells. */
  readonly info: TextEngine['info'] & {
    /** Of the model's config. */
    readonly config: {
      /** How long an embedding is. */
      readonly nEmbd: number;
    };
  };
}
