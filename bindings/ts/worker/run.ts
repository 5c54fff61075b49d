import { errorFor, InvalidArgumentError } from '../errors.js';
import { emptyPrompt } from '../prompt.js';
import { chunksAhead, type GenerateRequest, type GenerateSummary } from '../protocol.js';
import { StreamDecoder } from '../tokenizer/stream-decoder.js';
import type { FinishReason, GenerateChunk } from '../types.js';
import { type WasmSequence, type WasmSequenceOptions, wasmEventKinds } from '../wasm-module.js';
import { checkStatus, type LoadedModel } from './load.js';
import { reportMemory } from './memory.js';
import { sequenceOptions } from './sequence-options.js';
import { type StepTime, Stopwatch } from './stopwatch.js';

/** Where a run's sequence comes from, and what becomes of it. */
export interface RunContext {
  /** Tokens that are there before the prompt. */
  readonly size: number;
  /** @throws what the sequence's status says, which then holds nothing of the prompt. */
  begin(prompt: Int32Array, options: WasmSequenceOptions): WasmSequence;
  /** @param drewStop Whether the last id is a stop token, which is no output. */
  end(drewStop: boolean): void;
}

export interface RunOutput {
  chunk(chunk: GenerateChunk): void;
}

/** One generation, moved on by what the engine's steps did for its sequence. */
export class Run {
  readonly #model: LoadedModel;
  readonly #request: GenerateRequest;
  readonly #context: RunContext;
  readonly #output: RunOutput;
  readonly #watch = new Stopwatch();
  readonly #decoder: StreamDecoder;
  readonly #stopTokens: ReadonlySet<number | undefined>;
  readonly #sequence: WasmSequence;
  readonly #promptSize: number;
  #count = 0;
  /** Chunks that are put out and not taken. */
  #ahead = 0;

  /** @throws InvalidArgumentError, GenerationError: the prompt cannot be had; the context is then as it was. */
  constructor(
    model: LoadedModel,
    request: GenerateRequest,
    context: RunContext,
    output: RunOutput,
  ) {
    this.#model = model;
    this.#request = request;
    this.#context = context;
    this.#output = output;
    this.#decoder = new StreamDecoder(model.tokenizer);
    this.#stopTokens = new Set(request.stopTokens ?? [model.info.endOfText]);
    const prompt = encodePrompt(model, request, context.size);
    this.#sequence = context.begin(prompt, sequenceOptions(model, request));
    this.#promptSize = this.#sequence.ids().length;
    this.#sequence.setPaused(this.isPaused);
  }

  /** The id that steps call the sequence by. */
  get sequence(): number {
    return this.#sequence.id();
  }

  /** Whether steps leave it out, since its consumer is too far behind. */
  get isPaused(): boolean {
    return this.#ahead >= chunksAhead;
  }

  /** The consumer has taken `count` more chunks. */
  taken(count: number): void {
    this.#ahead -= count;
    this.#sequence.setPaused(this.isPaused);
  }

  /** The summary of a run that has nothing to draw. */
  summaryIfDone(): GenerateSummary | undefined {
    return this.#request.maxTokens === 0 ? this.#summarise('length', '') : undefined;
  }

  /**
   * Takes what a step did for the sequence.
   * @returns The summary, once the run is complete.
   * @throws GenerationError when it has failed.
   */
  advance(kind: number, token: number, time: StepTime): GenerateSummary | undefined {
    const drew = kind === wasmEventKinds.token;
    this.#watch.add(time, drew);
    if (kind === wasmEventKinds.failed) this.#fail();
    if (!drew) return undefined;
    if (this.#stopTokens.has(token)) {
      const summary = this.#summarise('stop', this.#decoder.flush());
      this.#context.end(true);
      return summary;
    }
    this.#count++;
    const { maxTokens = Number.POSITIVE_INFINITY, overflow } = this.#request;
    const enough = this.#count >= maxTokens;
    const full = this.#sequence.remaining() <= 0;
    const ends = enough || full;
    this.#put(token, this.#decoder.push(token) + (ends ? this.#decoder.flush() : ''));
    if (full && !enough && overflow === 'error') {
      const { contextLength } = this.#model.info;
      throw errorFor('context-full', `The context of ${contextLength} tokens is full.`);
    }
    if (!ends) return undefined;
    const summary = this.#summarise('length', '');
    this.#context.end(false);
    return summary;
  }

  /** Ends the run before it is complete. */
  abandon(): void {
    this.#context.end(false);
  }

  #put(token: number, text: string): void {
    this.#ahead++;
    this.#sequence.setPaused(this.isPaused);
    this.#output.chunk({ token, text, ...this.#logprobs() });
  }

  /** Of the token that the last step drew. */
  #logprobs(): Pick<GenerateChunk, 'logprob' | 'topLogprobs'> {
    const { logprobs } = this.#request;
    if (logprobs === undefined) return {};
    const { tokenizer, info } = this.#model;
    const count = Math.min(logprobs, tokenizer.vocabSize, info.config.vocabSize);
    const [logprob = 0, ...likeliest] = this.#sequence.logProbabilities(count);
    const topLogprobs = Array.from({ length: count }, (_, i) => {
      const [token = 0, logprob = 0] = likeliest.slice(2 * i, 2 * i + 2);
      return { token, text: tokenizer.decode([token]), logprob };
    });
    return { logprob, topLogprobs };
  }

  #fail(): never {
    checkStatus(this.#sequence.status());
    throw errorFor('internal', 'The engine gave a sequence up without a reason.');
  }

  #summarise(finishReason: FinishReason, tail: string): GenerateSummary {
    return {
      finishReason,
      usage: {
        prompt: this.#promptSize,
        cached: this.#sequence.reused(),
        completion: this.#count,
      },
      timings: this.#watch.timings(),
      memory: reportMemory(this.#model),
      tail,
    };
  }
}

/** @throws InvalidArgumentError, GenerationError `context-full` */
function encodePrompt(
  model: LoadedModel,
  { prompt, allowSpecial, overflow, nKeep }: GenerateRequest,
  before: number,
): Int32Array {
  const { tokenizer } = model;
  const { contextLength } = model.info;
  const { nPositions, vocabSize } = model.info.config;
  const ids = typeof prompt === 'string' ? tokenizer.encode(prompt, { allowSpecial }) : prompt;
  if (before + ids.length === 0) throw new InvalidArgumentError(emptyPrompt);
  const foreign = ids.find(id => id >= vocabSize);
  if (foreign !== undefined) {
    throw new InvalidArgumentError(
      `The prompt has the token ${foreign}, but the model's vocabulary ends at ${vocabSize - 1}.`,
    );
  }
  // A shift makes room before the prompt, but not in it.
  const kept = overflow === 'shift' ? Math.min(before, nKeep) : before;
  if (kept + ids.length > contextLength) {
    const room =
      contextLength < nPositions
        ? `the engine was loaded with a contextLength of ${contextLength} (the model has ${nPositions} positions)`
        : `the model has ${nPositions} positions`;
    const rest = kept > 0 ? ` after the session's ${kept}` : '';
    throw errorFor('context-full', `The prompt has ${ids.length} tokens${rest}, but ${room}.`);
  }
  return ids;
}
