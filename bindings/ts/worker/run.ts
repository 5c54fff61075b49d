import { errorFor, InvalidArgumentError, KvasmError } from '../errors.js';
import type { GenerateRequest, GenerateSummary } from '../protocol.js';
import { StreamDecoder } from '../tokenizer/stream-decoder.js';
import type { FinishReason } from '../types.js';
import {
  type WasmSequence,
  type WasmSequenceOptions,
  wasmCacheStrategies,
  wasmStepFailed,
  wasmStepPrefill,
} from '../wasm-module.js';
import { checkStatus, type LoadedModel } from './load.js';
import { reportMemory } from './memory.js';
import type { Stopwatch } from './stopwatch.js';

/** What a run needs of the queue that it is in. */
export interface RunTurn {
  readonly cancelled: boolean;
  chunk(token: number, text: string): void;
  /** After each step: lets messages in, and waits while the consumer is too far behind. */
  rest(): Promise<void>;
}

/**
 * Generates; undefined when cancelled. Errors that are no KvasmError come from WebAssembly, which is then beyond use.
 */
export async function runGeneration(
  model: LoadedModel,
  request: GenerateRequest,
  watch: Stopwatch,
  turn: RunTurn,
): Promise<GenerateSummary | undefined> {
  const prompt = encodePrompt(model, request);
  if (request.maxTokens === 0) return summarise(model, watch, prompt.length, 0, 'length', '');
  const sequence = model.engine.createSequence(prompt, sequenceOptions(model, request));
  let summary: GenerateSummary | undefined;
  try {
    checkStatus(sequence.status());
    summary = await drawTokens(model, request, watch, turn, sequence, prompt.length);
  } catch (error) {
    // After a trap, calling in again could do anything.
    if (error instanceof KvasmError) sequence.delete();
    throw error;
  }
  sequence.delete();
  return summary;
}

async function drawTokens(
  model: LoadedModel,
  request: GenerateRequest,
  watch: Stopwatch,
  turn: RunTurn,
  sequence: WasmSequence,
  promptLength: number,
): Promise<GenerateSummary | undefined> {
  const { maxTokens = Number.POSITIVE_INFINITY } = request;
  const stopTokens = new Set(request.stopTokens ?? [model.info.endOfText]);
  const decoder = new StreamDecoder(model.tokenizer);
  let count = 0;
  const summary = (reason: FinishReason, tail: string) =>
    summarise(model, watch, promptLength, count, reason, tail);

  while (!turn.cancelled) {
    const token = watch.time(
      () => sequence.step(),
      result => result !== wasmStepPrefill && result !== wasmStepFailed,
    );
    if (token === wasmStepFailed) failFor(sequence);
    if (token !== wasmStepPrefill) {
      if (stopTokens.has(token)) return summary('stop', decoder.flush());
      count++;
      const full = count >= maxTokens || sequence.remaining() <= 0;
      turn.chunk(token, decoder.push(token) + (full ? decoder.flush() : ''));
      if (full) return summary('length', '');
    }
    await turn.rest();
  }
  return undefined;
}

function failFor(sequence: WasmSequence): never {
  checkStatus(sequence.status());
  throw new Error('A step failed, but its status is ok');
}

/** @throws InvalidArgumentError, GenerationError `context-full` */
function encodePrompt(model: LoadedModel, { prompt, allowSpecial }: GenerateRequest): Int32Array {
  const { capacity, tokenizer } = model;
  const { nPositions, vocabSize } = model.info.config;
  const ids = typeof prompt === 'string' ? tokenizer.encode(prompt, { allowSpecial }) : prompt;
  const foreign = ids.find(id => id >= vocabSize);
  if (foreign !== undefined) {
    throw new InvalidArgumentError(
      `The prompt has the token ${foreign}, but the model's vocabulary ends at ${vocabSize - 1}.`,
    );
  }
  if (ids.length > capacity) {
    const room =
      capacity < nPositions
        ? `the engine was loaded with a contextLength of ${capacity} (the model has ${nPositions} positions)`
        : `the model has ${nPositions} positions`;
    throw errorFor('context-full', `The prompt has ${ids.length} tokens, but ${room}.`);
  }
  return ids;
}

function sequenceOptions(model: LoadedModel, request: GenerateRequest): WasmSequenceOptions {
  const { temperature, topK, topP, seed, cache } = request;
  const { vocabSize } = model.tokenizer;
  return {
    cache: wasmCacheStrategies[cache],
    temperature,
    topK,
    topP,
    seedLow: seed % 2 ** 32,
    seedHigh: Math.floor(seed / 2 ** 32),
    // Rows beyond the tokenizer's ids are padding, which must not be drawn.
    vocabLimit: vocabSize < model.info.config.vocabSize ? vocabSize : 0,
  };
}

function summarise(
  model: LoadedModel,
  watch: Stopwatch,
  promptLength: number,
  count: number,
  finishReason: FinishReason,
  tail: string,
): GenerateSummary {
  return {
    finishReason,
    usage: { prompt: promptLength, completion: count },
    timings: watch.timings(),
    memory: reportMemory(model),
    tail,
  };
}
