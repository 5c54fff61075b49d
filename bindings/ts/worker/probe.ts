import type { TextScore } from '../compute-types.js';
import { errorFor } from '../errors.js';
import type { Calls, PromptRequest } from '../protocol.js';
import { type WasmSequence, wasmEventKinds, wasmOutputs } from '../wasm-module.js';
import { checked } from './checked.js';
import { encodePrompt } from './encode-prompt.js';
import { checkStatus, type LoadedModel } from './load.js';
import type { Job, JobHost } from './scheduler.js';
import { vocabLimit } from './sequence-options.js';

/** What is gathered from a sequence that draws no tokens. */
export interface Gatherer {
  /** One of wasmOutputs. */
  readonly output: number;
  /** Called after each step that computed something for the sequence. */
  gather?(sequence: WasmSequence): void;
  /** What the call is answered with, when all is computed. */
  finish(sequence: WasmSequence): Calls['logits' | 'embed' | 'score']['answer'];
}

/** A call that asks what the model makes of a prompt. It runs in one batch with all others. */
export class Probe implements Job {
  readonly isPaused = false;
  readonly #host: JobHost;
  readonly #gatherer: Gatherer;
  readonly #sequence: WasmSequence;

  /** @throws InvalidArgumentError, GenerationError */
  constructor(
    model: LoadedModel,
    request: PromptRequest,
    makeGatherer: (prompt: Int32Array) => Gatherer,
    host: JobHost,
  ) {
    this.#host = host;
    const prompt = encodePrompt(model, request);
    this.#gatherer = makeGatherer(prompt);
    const options = {
      ...withoutDrawing,
      output: this.#gatherer.output,
      vocabLimit: vocabLimit(model),
    };
    this.#sequence = checked(model.engine.startSequence(prompt, options));
  }

  start(): boolean {
    this.#host.own(this.#sequence.id());
    return false;
  }

  taken(): void {}

  /** @throws GenerationError when the sequence has failed. */
  advance(_sequence: number, kind: number): boolean {
    if (kind === wasmEventKinds.failed) checkStatus(this.#sequence.status());
    this.#gatherer.gather?.(this.#sequence);
    if (kind !== wasmEventKinds.done) return false;
    const answer = this.#gatherer.finish(this.#sequence);
    const transfer = answer instanceof Float32Array ? [answer.buffer as ArrayBuffer] : [];
    this.#host.post({ type: 'answer', id: this.#host.id, answer }, transfer);
    this.abandon();
    return true;
  }

  abandon(): void {
    this.#sequence.delete();
  }
}

const withoutDrawing = {
  cache: 0,
  temperature: 0,
  topK: 0,
  topP: 1,
  minP: 0,
  repetitionPenalty: 1,
  frequencyPenalty: 0,
  presencePenalty: 0,
  logitBias: [],
  seedLow: 0,
  seedHigh: 0,
  shift: false,
  nKeep: 0,
  reusePrefix: true,
  promptLogprobs: -1,
};

/** @throws GenerationError `out-of-memory` when there is no room for the rows. */
export function gatherLogits(model: LoadedModel, all: boolean, prompt: Int32Array): Gatherer {
  const { vocabSize } = model.info.config;
  const first = all ? 0 : prompt.length - 1;
  const rows = allocate((prompt.length - first) * vocabSize);
  return {
    output: all ? wasmOutputs.allLogits : wasmOutputs.lastLogits,
    gather(sequence) {
      const count = sequence.logitsCount();
      const position = sequence.computed() - count - first;
      for (let i = 0; i < count; i++) {
        rows.set(sequence.logitsAt(i) ?? [], (position + i) * vocabSize);
      }
    },
    finish: () => rows,
  };
}

export function gatherEmbedding({ pooling }: Pick<Calls['embed']['request'], 'pooling'>): Gatherer {
  return {
    output: pooling === 'mean' ? wasmOutputs.meanHidden : wasmOutputs.lastHidden,
    finish(sequence) {
      const values = Float32Array.from(sequence.values());
      if (values.every(Number.isFinite)) return values;
      throw errorFor('non-finite', 'The hidden states hold NaN or infinity.');
    },
  };
}

export function gatherScore({ tokenizer }: LoadedModel, prompt: Int32Array): Gatherer {
  return {
    output: wasmOutputs.logProbabilities,
    finish(sequence): TextScore {
      const logprobs = Array.from(sequence.values());
      const total = logprobs.reduce((sum, logprob) => sum + logprob, 0);
      return {
        tokens: Array.from(prompt, (token, i) => {
          // Padding, which is no text.
          const text = token < tokenizer.vocabSize ? tokenizer.decode([token]) : '';
          return { token, text, logprob: logprobs[i - 1] };
        }),
        total,
        perplexity: logprobs.length > 0 ? Math.exp(-total / logprobs.length) : undefined,
      };
    },
  };
}

function allocate(count: number): Float32Array {
  try {
    return new Float32Array(count);
  } catch (cause) {
    throw errorFor('out-of-memory', `There is no room for ${count} logits.`, { cause });
  }
}
