import { errorFor, KvasmError } from '../errors.js';
import { packError, type WorkerMessage } from '../protocol.js';
import type { LoadedModel } from './load.js';
import type { StepTime } from './stopwatch.js';
import { Turns } from './turns.js';

/** A call that the engine works for, by one sequence or more. */
export interface Job {
  /** Whether steps leave its sequences out, since its consumer is too far behind. */
  readonly isPaused: boolean;
  /** Called once, before any step. @returns Whether it is done already. */
  start(): boolean;
  /** The consumer has taken `count` more chunks. */
  taken(count: number): void;
  /**
   * Takes what a step did for one of its sequences.
   * @returns Whether it is done; it has then freed what it had.
   * @throws KvasmError when it has failed.
   */
  advance(sequence: number, kind: number, token: number, time: StepTime): boolean;
  /** Ends it before it is done. */
  abandon(): void;
}

/** What a job has of its scheduler. */
export interface JobHost {
  /** The id of the call. */
  readonly id: number;
  post(message: WorkerMessage, transfer?: ArrayBuffer[]): void;
  /** Says that steps for this sequence are for the job. */
  own(sequence: number): void;
}

/** Steps the engine while there is a job to move on, and lets messages in between. */
export class Scheduler {
  readonly #model: LoadedModel;
  readonly #post: JobHost['post'];
  readonly #onChange: () => void;
  readonly #onCrash: (error: unknown) => void;
  readonly #turns = new Turns();
  /** By the id of the call. */
  readonly #jobs = new Map<number, Job>();
  readonly #callBySequence = new Map<number, number>();
  #stepping = false;
  #closed = false;

  /**
   * @param onChange Told when the cache may have changed.
   * @param onCrash Told of what WebAssembly threw; the scheduler is then closed.
   */
  constructor(
    model: LoadedModel,
    post: JobHost['post'],
    onChange: () => void,
    onCrash: (error: unknown) => void,
  ) {
    this.#model = model;
    this.#post = post;
    this.#onChange = onChange;
    this.#onCrash = onCrash;
  }

  /** @param make Its KvasmErrors are answers to the call. */
  add(id: number, make: (host: JobHost) => Job): void {
    this.#guard(id, () => {
      const job = make({
        id,
        post: this.#post,
        own: sequence => this.#callBySequence.set(sequence, id),
      });
      this.#jobs.set(id, job);
      if (job.start()) this.#forget(id);
    });
    this.#wake();
  }

  taken(id: number, count: number): void {
    const job = this.#jobs.get(id);
    if (!job) return;
    this.#guard(id, () => job.taken(count));
    this.#wake();
  }

  cancel(id: number): void {
    const job = this.#jobs.get(id);
    if (!job) return;
    this.#forget(id);
    this.#guard(id, () => job.abandon());
  }

  /** Ends a job with an error. */
  fail(id: number, error: KvasmError): void {
    if (!this.#jobs.has(id)) return;
    this.cancel(id);
    this.#post({ type: 'failed', id, error: packError(error) });
  }

  close(): void {
    this.#closed = true;
    this.#jobs.clear();
    this.#callBySequence.clear();
    this.#turns.close();
  }

  #wake(): void {
    if (!this.#stepping && this.#hasWork()) void this.#stepWhileThereIsWork();
  }

  #hasWork(): boolean {
    for (const job of this.#jobs.values()) if (!job.isPaused) return true;
    return false;
  }

  async #stepWhileThereIsWork(): Promise<void> {
    this.#stepping = true;
    // Calls that come in one go start in one batch.
    await this.#turns.next();
    while (!this.#closed && this.#hasWork()) {
      this.#step();
      this.#onChange();
      await this.#turns.next();
    }
    this.#stepping = false;
  }

  #step(): void {
    const from = performance.now();
    let events: Int32Array;
    try {
      // A copy, since whatever is called next may move what this is a view of.
      events = this.#model.engine.step().slice();
    } catch (error) {
      this.#crash(error);
      return;
    }
    const time = { from, to: performance.now() };
    // Before any sequence gives back what it held.
    this.#onChange();
    if (events.length === 0) this.#failStalled();
    for (let at = 0; at < events.length && !this.#closed; at += 3) {
      const [sequence = 0, kind = 0, token = 0] = events.subarray(at, at + 3);
      this.#dispatch(sequence, kind, token, time);
    }
  }

  #dispatch(sequence: number, kind: number, token: number, time: StepTime): void {
    const id = this.#callBySequence.get(sequence);
    const job = id === undefined ? undefined : this.#jobs.get(id);
    if (id === undefined || !job) return;
    this.#guard(id, () => {
      if (job.advance(sequence, kind, token, time)) this.#forget(id);
    });
  }

  /** Nothing is paused, and nothing was done: it would be so for ever. */
  #failStalled(): void {
    for (const [id, job] of this.#jobs) {
      if (job.isPaused) continue;
      this.fail(id, errorFor('internal', 'The engine has nothing to compute for this call.'));
    }
  }

  #forget(id: number): void {
    this.#jobs.delete(id);
    for (const [sequence, call] of this.#callBySequence) {
      if (call === id) this.#callBySequence.delete(sequence);
    }
  }

  /** What is done for one job. A KvasmError is that job's; anything else comes from WebAssembly. */
  #guard(id: number, action: () => void): void {
    try {
      action();
    } catch (error) {
      if (!(error instanceof KvasmError)) this.#crash(error);
      else if (this.#jobs.has(id)) this.fail(id, error);
      else this.#post({ type: 'failed', id, error: packError(error) });
    }
  }

  #crash(error: unknown): void {
    this.close();
    this.#onCrash(error);
  }
}
