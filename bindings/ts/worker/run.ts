import { errorFor } from '../errors.js';
import { chunksAhead, type GenerateRequest, type GenerateSummary } from '../protocol.js';
import type { FinishReason, GenerateChunk } from '../types.js';
import { type WasmSequence, type WasmSequenceOptions, wasmEventKinds } from '../wasm-module.js';
import { checked } from './checked.js';
import { Completion } from './completion.js';
import { encodePrompt } from './encode-prompt.js';
import { checkStatus, type LoadedModel } from './load.js';
import { reportMemory } from './memory.js';
import type { Job, JobHost } from './scheduler.js';
import { likeliestCount, sequenceOptions } from './sequence-options.js';
import { type StepTime, Stopwatch } from './stopwatch.js';

/** Where a run's sequence comes from, and what becomes of it. */
export interface RunContext {
  /** Tokens that are there before the prompt. */
  readonly size: number;
  /** @throws what the sequence's status says, which then holds nothing of the prompt. */
  begin(prompt: Int32Array, options: WasmSequenceOptions): WasmSequence;
  /** @param dropped How many of the last ids are no output: a stop token, or those of a stop string. */
  end(dropped: number): void;
}

type TokenLogprobs = Pick<GenerateChunk, 'logprob' | 'topLogprobs'>;

/** One of the completions of a run's prompt. */
interface Choice {
  readonly completion: Completion;
  /** Before the first draw, and after the end, there may be none. */
  sequence: WasmSequence | undefined;
  drawn: number;
  finishReason: FinishReason | undefined;
}

/** One call of `generate`, moved on by what the engine's steps did for its sequences. */
export class Run implements Job {
  readonly #model: LoadedModel;
  readonly #request: GenerateRequest;
  readonly #context: RunContext;
  readonly #host: JobHost;
  readonly #watch = new Stopwatch();
  readonly #stopTokens: ReadonlySet<number>;
  readonly #choices: readonly [Choice, ...Choice[]];
  readonly #prompt: Int32Array;
  /** Of the prompt, and in a session of all before it. */
  readonly #promptSize: number;
  #cached: number;
  /** Chunks that are put out and not taken. */
  #ahead = 0;

  /** @throws InvalidArgumentError, GenerationError: the prompt cannot be had; the context is then as it was. */
  constructor(model: LoadedModel, request: GenerateRequest, context: RunContext, host: JobHost) {
    this.#model = model;
    this.#request = request;
    this.#context = context;
    this.#host = host;
    this.#stopTokens = new Set(request.stopTokens);
    const { size } = context;
    // A shift makes room before the prompt, but not in it.
    const kept = request.overflow === 'shift' ? Math.min(size, request.nKeep) : size;
    this.#prompt = encodePrompt(model, request, size, kept);
    const makeChoice = (index: number): Choice => ({
      completion: new Completion(model.tokenizer, request.stop, chunk => this.#put(index, chunk)),
      sequence: undefined,
      drawn: 0,
      finishReason: undefined,
    });
    const others = Array.from({ length: request.n - 1 }, (_, i) => makeChoice(i + 1));
    this.#choices = [makeChoice(0), ...others];
    const sequence = context.begin(this.#prompt, sequenceOptions(model, request, 0));
    this.#promptSize = sequence.ids().length;
    this.#cached = sequence.reused();
    this.#choices[0].sequence = sequence;
  }

  get isPaused(): boolean {
    return this.#ahead >= chunksAhead;
  }

  start(): boolean {
    const { sequence } = this.#choices[0];
    if (sequence) {
      this.#host.own(sequence.id());
      this.#host.post({ type: 'started', id: this.#host.id, sequence: sequence.id() });
    }
    if (this.#request.echo && !this.#echoesLogprobs) this.#echo();
    this.#pauseOrGoOn();
    if (this.#request.maxTokens !== 0 || this.#echoesLogprobs) return false;
    this.#endAll();
    return true;
  }

  /** Then the prompt can be put out only when it is computed, by which a first token is drawn. */
  get #echoesLogprobs(): boolean {
    const { echo, logprobs } = this.#request;
    return echo && logprobs !== undefined && this.#prompt.length > 0;
  }

  taken(count: number): void {
    this.#ahead -= count;
    this.#pauseOrGoOn();
  }

  /** @throws GenerationError when a sequence has failed. */
  advance(id: number, kind: number, token: number, time: StepTime): boolean {
    const drew = kind === wasmEventKinds.token;
    const isFirst = drew && this.#choices.every(({ drawn }) => drawn === 0);
    this.#watch.add(time, drew);
    const choice = this.#choices.find(({ sequence }) => sequence?.id() === id);
    if (!choice?.sequence) return false;
    if (kind === wasmEventKinds.failed) checkStatus(choice.sequence.status());
    if (!drew) return false;
    if (isFirst) this.#cached = choice.sequence.reused();
    if (isFirst && this.#echoesLogprobs) {
      this.#echo(choice.sequence.values());
      if (this.#request.maxTokens === 0) {
        choice.drawn = 1;
        this.#endAll();
        return true;
      }
    }
    // All of them, while the logits that they are drawn from are there.
    const first: [Choice, number][] = isFirst ? this.#forkInto(choice.sequence) : [];
    this.#draw(choice, token);
    for (const [fork, forkToken] of first) this.#draw(fork, forkToken);
    return this.#choices.every(({ finishReason }) => finishReason !== undefined);
  }

  /** Ends choices that draw nothing. */
  #endAll(): void {
    this.#finish();
    for (const choice of this.#choices) this.#free(choice, choice.drawn);
  }

  abandon(): void {
    for (const choice of this.#choices) this.#free(choice, 0);
  }

  /** Gives the other choices forks of the prompt's sequence, with a first token of their own. */
  #forkInto(prompt: WasmSequence): [Choice, number][] {
    return this.#choices.slice(1).map((choice, i) => {
      const options = sequenceOptions(this.#model, this.#request, i + 1);
      const sequence = checked(prompt.forkAndRedraw(options));
      choice.sequence = sequence;
      this.#host.own(sequence.id());
      sequence.setPaused(this.isPaused);
      return [choice, sequence.ids().at(-1) ?? 0];
    });
  }

  /** Takes a token that was drawn for a choice. */
  #draw(choice: Choice, token: number): void {
    const { completion, sequence } = choice;
    if (!sequence) return;
    choice.drawn++;
    if (this.#stopTokens.has(token)) {
      completion.end();
      this.#end(choice, 'stop');
      return;
    }
    const { maxTokens = Number.POSITIVE_INFINITY, overflow } = this.#request;
    const enough = choice.drawn >= maxTokens;
    const full = sequence.remaining() <= 0;
    const chunk = { index: 0, token, text: '', ...this.#logprobs(sequence) };
    if (completion.add(chunk, enough || full)) {
      this.#end(choice, 'stop');
    } else if (full && !enough && overflow === 'error') {
      const { contextLength } = this.#model.info;
      throw errorFor('context-full', `The context of ${contextLength} tokens is full.`);
    } else if (enough || full) {
      this.#end(choice, 'length');
    }
  }

  #end(choice: Choice, reason: FinishReason): void {
    choice.finishReason = reason;
    // Before the memory of the last of them is freed, so that the summary tells of it.
    if (this.#choices.every(({ finishReason }) => finishReason !== undefined)) this.#finish();
    this.#free(choice, choice.drawn - choice.completion.count);
  }

  #free(choice: Choice, dropped: number): void {
    const { sequence } = choice;
    if (!sequence) return;
    choice.sequence = undefined;
    if (choice === this.#choices[0]) this.#context.end(dropped);
    else sequence.delete();
  }

  /** @param values What the sequence has of the prompt's log-probabilities. */
  #echo(values?: Float64Array): void {
    const stride = 1 + 2 * likeliestCount(this.#model, this.#request);
    // The context's first id has none. A session that computes its earlier ids anew has theirs, too.
    const skipped = values ? values.length / stride - this.#prompt.length : 0;
    const logprobs = Array.from(this.#prompt, (_, i) => {
      const row = (skipped + i) * stride;
      return values && row >= 0 ? this.#readLogprobs(values.subarray(row, row + stride)) : {};
    });
    for (const [index, { completion }] of this.#choices.entries()) {
      for (const [i, token] of this.#prompt.entries()) {
        this.#put(index, { index, token, text: completion.echo(token), ...logprobs[i] });
      }
    }
  }

  #put(index: number, chunk: GenerateChunk): void {
    this.#ahead++;
    this.#pauseOrGoOn();
    this.#host.post({ type: 'chunk', id: this.#host.id, chunk: { ...chunk, index } });
  }

  #pauseOrGoOn(): void {
    for (const { sequence } of this.#choices) sequence?.setPaused(this.isPaused);
  }

  /** Of the token that the last step drew. */
  #logprobs(sequence: WasmSequence): TokenLogprobs {
    if (this.#request.logprobs === undefined) return {};
    const count = likeliestCount(this.#model, this.#request);
    return this.#readLogprobs(sequence.logProbabilities(count));
  }

  /** A token's log-probability, and an id and a log-probability for each of the likeliest. */
  #readLogprobs([logprob = 0, ...likeliest]: Float64Array): TokenLogprobs {
    const topLogprobs = Array.from({ length: likeliest.length / 2 }, (_, i) => {
      const [token = 0, logprob = 0] = likeliest.slice(2 * i, 2 * i + 2);
      return { token, text: this.#model.tokenizer.decode([token]), logprob };
    });
    return { logprob, topLogprobs };
  }

  #finish(): void {
    const summary: GenerateSummary = {
      choices: this.#choices.map(({ completion: { tail }, finishReason = 'length' }) => {
        return { finishReason, tail };
      }),
      usage: {
        prompt: this.#promptSize,
        cached: this.#cached,
        completion: this.#choices.reduce((sum, { completion }) => sum + completion.count, 0),
      },
      timings: this.#watch.timings(),
      memory: reportMemory(this.#model),
    };
    this.#host.post({ type: 'finished', id: this.#host.id, summary });
  }
}
