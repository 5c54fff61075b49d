import type { GenerateRequest } from '../protocol.js';
import { type WasmSequenceOptions, wasmCacheStrategies, wasmOutputs } from '../wasm-module.js';
import type { LoadedModel } from './load.js';

/** A request's options as the core takes them. */
export function sequenceOptions(model: LoadedModel, request: GenerateRequest): WasmSequenceOptions {
  const { temperature, topK, topP, minP, seed, cache, overflow, nKeep, reusePrefix } = request;
  const { repetitionPenalty, frequencyPenalty, presencePenalty, logitBias } = request;
  const { vocabSize } = model.tokenizer;
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
    // Rows beyond the tokenizer's ids are padding, which must not be drawn.
    vocabLimit: vocabSize < model.info.config.vocabSize ? vocabSize : 0,
    shift: overflow === 'shift',
    nKeep: overflow === 'shift' ? nKeep : 0,
    reusePrefix,
  };
}
