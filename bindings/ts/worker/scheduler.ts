import { errorFor, KvasmError } from '../errors.js';
import {
  type GenerateRequest,
  type GenerateSummary,
  packError,
  type WorkerMessage,
} from '../protocol.js';
import type { LoadedModel } from './load.js';
import { Run, type RunContext } from './run.js';
import type { StepTime } from './stopwatch.js';
import { Turns } from './turns.js';

/** Steps the engine while there is a run to move on, and lets messages in between. */
export class Scheduler {
  readonly #model: LoadedModel;
  readonly #post: (message: WorkerMessage) => void;
  readonly #onCrash: (error: unknown) => void;
  readonly #turns = new Turns();
  /** By the id of the call. */
  readonly #runs = new Map<number, Run>();
  readonly #callBySequence = new Map<number, number>();
  #stepping = false;
  #closed = false;

  /** @param onCrash Told of what WebAssembly threw; the scheduler is then closed. */
  constructor(
    model: LoadedModel,
    post: (message: WorkerMessage) => void,
    onCrash: (error: unknown) => void,
  ) {
    this.#model = model;
    this.#post = post;
    this.#onCrash = onCrash;
  }

  add(id: number, request: GenerateRequest, context: RunContext): void {
    this.#guard(id, () => {
      const run = new Run(this.#model, request, context, {
        chunk: chunk => this.#post({ type: 'chunk', id, chunk }),
      });
      this.#runs.set(id, run);
      this.#callBySequence.set(run.sequence, id);
      this.#post({ type: 'started', id, sequence: run.sequence });
      const summary = run.summaryIfDone();
      if (summary) {
        run.abandon();
        this.#finish(id, summary);
      }
    });
    this.#wake();
  }

  taken(id: number, count: number): void {
    const run = this.#runs.get(id);
    if (!run) return;
    this.#guard(id, () => run.taken(count));
    this.#wake();
  }

  cancel(id: number): void {
    const run = this.#runs.get(id);
    if (!run) return;
    this.#forget(id);
    this.#guard(id, () => run.abandon());
  }

  /** Ends a run with an error. */
  fail(id: number, error: KvasmError): void {
    if (!this.#runs.has(id)) return;
    this.cancel(id);
    this.#post({ type: 'failed', id, error: packError(error) });
  }

  close(): void {
    this.#closed = true;
    this.#runs.clear();
    this.#callBySequence.clear();
    this.#turns.close();
  }

  #wake(): void {
    if (!this.#stepping && this.#hasWork()) void this.#stepWhileThereIsWork();
  }

  #hasWork(): boolean {
    for (const run of this.#runs.values()) if (!run.isPaused) return true;
    return false;
  }

  async #stepWhileThereIsWork(): Promise<void> {
    this.#stepping = true;
    // Calls that come in one go start in one batch.
    await this.#turns.next();
    while (!this.#closed && this.#hasWork()) {
      this.#step();
      await this.#turns.next();
    }
    this.#stepping = false;
  }

  #step(): void {
    const from = performance.now();
    let events: Int32Array;
    try {
      // A copy, since whatever is called next may move what this is a view of.
      events = Int32Array.from(this.#model.engine.step());
    } catch (error) {
      this.#crash(error);
      return;
    }
    const time = { from, to: performance.now() };
    if (events.length === 0) this.#failStalled();
    for (let at = 0; at < events.length && !this.#closed; at += 3) {
      const [sequence = 0, kind = 0, token = 0] = events.subarray(at, at + 3);
      this.#dispatch(sequence, kind, token, time);
    }
  }

  #dispatch(sequence: number, kind: number, token: number, time: StepTime): void {
    const id = this.#callBySequence.get(sequence);
    const run = id === undefined ? undefined : this.#runs.get(id);
    if (id === undefined || !run) return;
    this.#guard(id, () => {
      const summary = run.advance(kind, token, time);
      if (summary) this.#finish(id, summary);
    });
  }

  /** Nothing is paused, and nothing was done: it would be so for ever. */
  #failStalled(): void {
    for (const [id, run] of this.#runs) {
      if (run.isPaused) continue;
      this.fail(id, errorFor('internal', 'The engine has nothing to compute for this run.'));
    }
  }

  #finish(id: number, summary: GenerateSummary): void {
    this.#forget(id);
    this.#post({ type: 'finished', id, summary });
  }

  #forget(id: number): void {
    this.#runs.delete(id);
    for (const [sequence, call] of this.#callBySequence) {
      if (call === id) this.#callBySequence.delete(sequence);
    }
  }

  /** What is done for one run. A KvasmError is that run's; anything else comes from WebAssembly. */
  #guard(id: number, action: () => void): void {
    try {
      action();
    } catch (error) {
      if (!(error instanceof KvasmError)) this.#crash(error);
      else if (this.#runs.has(id)) this.fail(id, error);
      else this.#post({ type: 'failed', id, error: packError(error) });
    }
  }

  #crash(error: unknown): void {
    this.close();
    this.#onCrash(error);
  }
}
