import type { GenerationControl, GenerationSink, WorkerClient } from './client.js';
import { Deferred } from './deferred.js';
import { InvalidArgumentError } from './errors.js';
import { generateRequest } from './options.js';
import { chunksAhead, type GenerateRequest, type GenerateSummary } from './protocol.js';
import type {
  Choice,
  EngineInfo,
  GenerateChunk,
  GenerateOptions,
  GenerateResult,
  Generation,
  Prompt,
} from './types.js';

// Fewer messages than one a chunk, and often enough that the Worker does not have to wait for them.
const takenAtOnce = chunksAhead / 4;

export interface GenerationRun {
  /** Called once, at the first demand. Throws what is wrong with the request. */
  start(sink: GenerationSink): GenerationControl;
  /** Keeps the process alive until the promise has settled. */
  hold<T>(promise: Promise<T>): Promise<T>;
  readonly signal: AbortSignal | undefined;
  /** How many completions there will be. */
  readonly n: number;
  /** Whether the result has the chunks, too. */
  readonly keepsChunks: boolean;
  /** Milliseconds that the engine took to load. */
  readonly loadTime: number;
}

/** A Worker with a model in it. */
export interface LoadedEngine {
  readonly client: WorkerClient;
  readonly info: EngineInfo;
  /** Milliseconds. */
  readonly loadTime: number;
}

/** The session that a run is to continue. */
export interface RunSession {
  readonly id: number;
  /** Throws if it is disposed. */
  check(): void;
}

/** A run that starts at the first demand. Never throws; the run fails instead. */
export function startGeneration(
  loaded: LoadedEngine,
  prompt: Prompt,
  options: GenerateOptions,
  session?: RunSession,
): Generation {
  const { info, loadTime } = loaded;
  let request: GenerateRequest | undefined;
  let refusal: unknown;
  try {
    // At once, so that the caller may change its arrays before the run starts.
    request = generateRequest(prompt, options, { info, inSession: session !== undefined });
  } catch (error) {
    refusal = error;
  }
  return new WorkerGeneration({
    start(sink) {
      if (!request) throw refusal;
      session?.check();
      // By `loaded`, which this run so keeps from being collected.
      return loaded.client.generate(request, session?.id, sink);
    },
    hold: promise => loaded.client.hold(promise),
    signal: request && options.signal,
    n: request?.n ?? 1,
    keepsChunks: request?.logprobs !== undefined,
    loadTime,
  });
}

/** A completion as far as its chunks have come. */
class PartialChoice {
  readonly #index: number;
  readonly #keepsChunks: boolean;
  #text = '';
  readonly #tokens: number[] = [];
  readonly #chunks: GenerateChunk[] = [];

  constructor(index: number, keepsChunks: boolean) {
    this.#index = index;
    this.#keepsChunks = keepsChunks;
  }

  add(chunk: GenerateChunk): void {
    this.#text += chunk.text;
    this.#tokens.push(chunk.token);
    if (this.#keepsChunks) this.#chunks.push(chunk);
  }

  finish({ finishReason, tail }: GenerateSummary['choices'][number]): Choice {
    return {
      index: this.#index,
      text: this.#text + tail,
      tokens: Int32Array.from(this.#tokens),
      finishReason,
      ...(this.#keepsChunks && { chunks: this.#chunks }),
    };
  }
}

type Outcome = { readonly result: GenerateResult } | { readonly error: unknown };

/** A generation whose run is in the Worker. Chunks are kept until the iterator takes them. */
export class WorkerGeneration implements Generation {
  /** Set by the Worker's first answer. */
  sequence: number | undefined;
  readonly #run: GenerationRun;
  #control: GenerationControl | undefined;
  #chunks: GenerateChunk[] = [];
  #delivered = 0;
  #unreported = 0;
  readonly #choices: readonly PartialChoice[];
  #waiting: Deferred<IteratorResult<GenerateChunk, undefined>>[] = [];
  #outcome: Outcome | undefined;
  readonly #settled = new Deferred<GenerateResult>();
  #started = false;
  #iterated = false;
  #drained = false;
  #left = false;

  constructor(run: GenerationRun) {
    this.#run = run;
    this.#choices = Array.from(
      { length: run.n },
      (_, index) => new PartialChoice(index, run.keepsChunks),
    );
  }

  result(): Promise<GenerateResult> {
    this.#start();
    if (!this.#drained) {
      this.#drained = true;
      this.#control?.taken(Number.POSITIVE_INFINITY);
    }
    return this.#outcome ? this.#settled.promise : this.#run.hold(this.#settled.promise);
  }

  [Symbol.asyncIterator](): AsyncIterableIterator<GenerateChunk> {
    if (this.#iterated) {
      throw new InvalidArgumentError(
        'A generation can be iterated over once; call generate again for another run.',
      );
    }
    this.#iterated = true;
    const iterator: AsyncIterableIterator<GenerateChunk> = {
      next: () => this.#next(),
      return: async () => {
        this.#leave();
        return { done: true, value: undefined };
      },
      [Symbol.asyncIterator]: () => iterator,
    };
    return iterator;
  }

  #start(): void {
    if (this.#started) return;
    this.#started = true;
    const { signal } = this.#run;
    if (signal?.aborted) {
      this.#settle({ error: signal.reason });
      return;
    }
    try {
      this.#control = this.#run.start({
        started: sequence => {
          this.sequence = sequence;
        },
        chunk: chunk => this.#receive(chunk),
        finish: summary => this.#finish(summary),
        fail: error => this.#settle({ error }),
      });
    } catch (error) {
      this.#settle({ error });
      return;
    }
    signal?.addEventListener('abort', this.#abort);
  }

  readonly #abort = () => this.#cancel(this.#run.signal?.reason);

  #next(): Promise<IteratorResult<GenerateChunk, undefined>> {
    if (this.#left) return Promise.resolve({ done: true, value: undefined });
    this.#start();
    const chunk = this.#takeBuffered();
    if (chunk) return Promise.resolve({ done: false, value: chunk });
    const waiting = new Deferred<IteratorResult<GenerateChunk, undefined>>();
    if (this.#outcome) {
      this.#end(waiting, this.#outcome);
      return waiting.promise;
    }
    this.#waiting.push(waiting);
    return this.#run.hold(waiting.promise);
  }

  #takeBuffered(): GenerateChunk | undefined {
    const chunk = this.#chunks[this.#delivered];
    if (!chunk) return undefined;
    this.#delivered++;
    if (this.#delivered === this.#chunks.length) {
      this.#chunks = [];
      this.#delivered = 0;
    }
    this.#reportTaken();
    return chunk;
  }

  #receive(chunk: GenerateChunk): void {
    if (this.#outcome) return;
    this.#choices[chunk.index]?.add(chunk);
    const waiting = this.#waiting.shift();
    if (waiting) {
      this.#reportTaken();
      waiting.resolve({ done: false, value: chunk });
    } else {
      this.#chunks.push(chunk);
    }
  }

  #reportTaken(): void {
    this.#unreported++;
    if (this.#drained || this.#unreported < takenAtOnce) return;
    this.#control?.taken(this.#unreported);
    this.#unreported = 0;
  }

  #finish(summary: GenerateSummary): void {
    const choices = this.#choices.map((choice, index) =>
      choice.finish(summary.choices[index] ?? { finishReason: 'length', tail: '' }),
    );
    const [{ index: _, ...first }] = choices as [Choice, ...Choice[]];
    const timings = { load: this.#run.loadTime, ...summary.timings };
    this.#settle({ result: { ...first, ...summary, choices, timings } });
  }

  /** The consumer wants no more chunks. */
  #leave(): void {
    this.#left = true;
    this.#chunks = [];
    for (const waiting of this.#waiting) waiting.resolve({ done: true, value: undefined });
    this.#waiting = [];
    if (this.#outcome) return;
    this.#cancel(new DOMException('The loop over the generation was left early.', 'AbortError'));
  }

  #cancel(reason: unknown): void {
    this.#control?.cancel();
    this.#started = true;
    this.#settle({ error: reason });
  }

  #settle(outcome: Outcome): void {
    if (this.#outcome) return;
    this.#outcome = outcome;
    this.#run.signal?.removeEventListener('abort', this.#abort);
    if ('error' in outcome) {
      // Whoever aborts wants no more of what is still in the buffer.
      this.#chunks = [];
      this.#settled.reject(outcome.error);
    } else {
      this.#settled.resolve(outcome.result);
    }
    for (const waiting of this.#waiting) this.#end(waiting, outcome);
    this.#waiting = [];
  }

  #end(waiting: Deferred<IteratorResult<GenerateChunk, undefined>>, outcome: Outcome): void {
    if ('error' in outcome) waiting.reject(outcome.error);
    else waiting.resolve({ done: true, value: undefined });
  }
}
