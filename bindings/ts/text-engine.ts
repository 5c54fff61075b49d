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
