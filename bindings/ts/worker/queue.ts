import { KvasmError } from '../errors.js';
import { chunksAhead, type GenerateRequest, packError, type WorkerMessage } from '../protocol.js';
import type { LoadedModel } from './load.js';
import { type RunTurn, runGeneration } from './run.js';
import { Stopwatch } from './stopwatch.js';
import { Turns } from './turns.js';

class Job {
  readonly id: number;
  readonly request: GenerateRequest;
  readonly watch = new Stopwatch();
  cancelled = false;
  /** Chunks that are posted and not taken. */
  ahead = 0;
  /** Lets a paused job look again at what has changed. */
  wake: () => void = () => {};

  constructor(id: number, request: GenerateRequest) {
    this.id = id;
    this.request = request;
  }
}

/** Runs generations one after the other, in the order in which they came. */
export class GenerationQueue {
  readonly #model: LoadedModel;
  readonly #post: (message: WorkerMessage) => void;
  readonly #onCrash: (error: unknown) => void;
  readonly #turns = new Turns();
  #jobs: Job[] = [];
  #running = false;

  /** @param onCrash Told of what WebAssembly threw; the queue is then closed. */
  constructor(
    model: LoadedModel,
    post: (message: WorkerMessage) => void,
    onCrash: (error: unknown) => void,
  ) {
    this.#model = model;
    this.#post = post;
    this.#onCrash = onCrash;
  }

  add(id: number, request: GenerateRequest): void {
    this.#jobs.push(new Job(id, request));
    this.#jobs[0]?.wake();
    if (!this.#running) void this.#run();
  }

  taken(id: number, count: number): void {
    const job = this.#jobs.find(candidate => candidate.id === id);
    if (!job) return;
    job.ahead -= count;
    job.wake();
  }

  cancel(id: number): void {
    const index = this.#jobs.findIndex(candidate => candidate.id === id);
    const job = this.#jobs[index];
    if (!job) return;
    job.cancelled = true;
    job.wake();
    // The first one runs, and leaves by itself.
    if (index > 0) this.#jobs.splice(index, 1);
  }

  close(): void {
    for (const job of this.#jobs) {
      job.cancelled = true;
      job.wake();
    }
    this.#jobs = [];
    this.#turns.close();
  }

  async #run(): Promise<void> {
    this.#running = true;
    for (let job = this.#jobs[0]; job; job = this.#jobs[0]) {
      await this.#runJob(job);
      this.#jobs.shift();
    }
    this.#running = false;
  }

  async #runJob(job: Job): Promise<void> {
    if (job.cancelled) return;
    const { id } = job;
    try {
      const turn = this.#turnOf(job);
      const summary = await runGeneration(this.#model, job.request, job.watch, turn);
      if (summary) this.#post({ type: 'finished', id, summary });
    } catch (error) {
      if (error instanceof KvasmError) {
        this.#post({ type: 'failed', id, error: packError(error) });
      } else {
        this.close();
        this.#onCrash(error);
      }
    }
  }

  #turnOf(job: Job): RunTurn {
    return {
      get cancelled() {
        return job.cancelled;
      },
      chunk: (token, text) => {
        job.ahead++;
        this.#post({ type: 'chunk', id: job.id, token, text });
      },
      rest: async () => {
        await this.#turns.next();
        // Whoever waits for a turn must not wait for another's consumer, who may in turn be waiting for them.
        while (job.ahead >= chunksAhead && !job.cancelled && this.#jobs.length === 1) {
          await new Promise<void>(resolve => {
            job.wake = resolve;
          });
        }
      },
    };
  }
}
