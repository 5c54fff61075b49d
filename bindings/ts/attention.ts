import { checkBoolean, checkInteger, checkNames } from './checks.js';
import { promptIds } from './prompt.js';
import type { AttentionRequest } from './protocol.js';
import type { ModelConfig, Prompt } from './types.js';

/** Which of the model's attention weights. */
export interface AttentionOptions {
  /** 0 to n_layer - 1. */
  layer: number;
  /** 0 to n_head - 1. Default: all heads of the layer. */
  head?: number;
  /** Read control tokens such as `<|endoftext|>` that a text spells out. Default false. */
  allowSpecial?: boolean;
}

/** What the queries of one layer give to the keys before them. */
export interface AttentionWeights {
  /** The n tokens of the prompt. */
  readonly tokens: Int32Array;
  /** Each token's text alone, with U+FFFD for a part of a character. */
  readonly texts: readonly string[];
  /** Which layer, from 0 on. */
  readonly layer: number;
  /** The heads that `weights` has, in its order. */
  readonly heads: readonly number[];
  /**
   * [heads, n, n]: `weights[(h * n + i) * n + j]` is what position i gives to position j. A row sums to 1; what a position does
   * not see, which is what comes later or is out of the window, gets 0.
   */
  readonly weights: Float32Array;
}

const optionNames = ['layer', 'head', 'allowSpecial'] as const;

/** @throws InvalidArgumentError */
export function attentionRequest(
  prompt: Prompt,
  options: AttentionOptions,
  { nLayer, nHead, vocabSize }: ModelConfig,
): AttentionRequest {
  checkNames('attention', options, optionNames);
  const { layer, head, allowSpecial = false } = options;
  checkInteger('layer', layer, 0, nLayer - 1);
  if (head !== undefined) checkInteger('head', head, 0, nHead - 1);
  checkBoolean('allowSpecial', allowSpecial);
  return { prompt: promptIds(prompt, vocabSize, false), allowSpecial, layer, head };
}

/** The heads of a layer that were asked for. */
export function headsOf(head: number | undefined, { nHead }: ModelConfig): number[] {
  return head === undefined ? Array.from({ length: nHead }, (_, index) => index) : [head];
}
