import type { GenerateRequest } from '../protocol.js';
import { type WasmSequenceOptions, wasmCacheStrategies, wasmOutputs } from '../wasm-module.js';
import type { LoadedModel } from './load.js';

/** A request's options as the core takes them, for its completion with this index. */
export function sequenceOptions(
  model: LoadedModel,
  request: GenerateRequest,
  index: number,
): WasmSequenceOptions {
  const { temperature, topK, topP, minP, cache, overflow, nKeep, reusePrefix, echo } = request;
  const { repetitionPenalty, frequencyPenalty, presencePenalty, logitBias } = request;
  // What a run of its own would be given for the same tokens. Sums beyond the last exact integer start again at 0.
  const room = 2 ** 53 - index;
  const seed = request.seed >= room ? request.seed - room : request.seed + index;
  return {
    output: wasmOutputs.tokens,
    cache: wasmCacheStrategies[cache],
    temperature,
    topK,
    topP,
    minP,
    repetitionPenalty,
    frequencyPenalty,
    presencePenalty,
    logitBias: logitBias.flat(),
    seedLow: seed % 2 ** 32,
    seedHigh: Math.floor(seed / 2 ** 32),
    vocabLimit: vocabLimit(model),
    shift: overflow === 'shift',
    nKeep: overflow === 'shift' ? nKeep : 0,
    reusePrefix,
    promptLogprobs: echo ? likeliestCount(model, request) : -1,
  };
}

/** How many likeliest tokens are told with each one; -1: not even its own log-probability. */
export function likeliestCount(
  { tokenizer, info }: LoadedModel,
  { logprobs = -1 }: GenerateRequest,
): number {
  return Math.min(logprobs, tokenizer.vocabSize, info.config.vocabSize);
}

/** Rows beyond the tokenizer's ids are padding, which must not be drawn; 0 where there are none. */
export function vocabLimit({ tokenizer, info }: LoadedModel): number {
  return tokenizer.vocabSize < info.config.vocabSize ? tokenizer.vocabSize : 0;
}
