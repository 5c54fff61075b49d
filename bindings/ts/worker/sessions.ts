import { errorFor, InvalidArgumentError } from '../errors.js';
import type { GenerateRequest } from '../protocol.js';
import type { WasmEngine, WasmSequence, WasmSequenceOptions } from '../wasm-module.js';
import { checked } from './checked.js';
import { checkStatus, type LoadedModel } from './load.js';
import { Run, type RunContext } from './run.js';
import type { Scheduler } from './scheduler.js';

/** A run's own sequence, which ends with it. */
export function freshContext(engine: WasmEngine): RunContext {
  let sequence: WasmSequence | undefined;
  return {
    size: 0,
    begin(prompt, options) {
      sequence = checked(engine.startSequence(prompt, options));
      return sequence;
    },
    end: () => sequence?.delete(),
  };
}

/**
 * A context that outlives its runs. Between them its sequence is paused, and keeps its blocks. Without a sequence (nothing
 * was computed yet, or it has failed) the ids are the context.
 */
class SessionContext implements RunContext {
  readonly #model: LoadedModel;
  #sequence: WasmSequence | undefined;
  #ids = new Int32Array();
  /** The call that generates. */
  run: number | undefined;

  constructor(model: LoadedModel, sequence?: WasmSequence) {
    this.#model = model;
    this.#sequence = sequence;
  }

  get size(): number {
    return this.#sequence ? this.#sequence.ids().length : this.#ids.length;
  }

  ids(): Int32Array<ArrayBuffer> {
    return Int32Array.from(this.#sequence ? this.#sequence.ids() : this.#ids);
  }

  begin(prompt: Int32Array, options: WasmSequenceOptions): WasmSequence {
    const overflows = this.size + prompt.length > this.#model.info.contextLength;
    if (this.#sequence && !(overflows && options.shift)) {
      checkStatus(this.#sequence.append(prompt, options));
      return this.#sequence;
    }
    const before = overflows ? this.#shifted(prompt.length, options.nKeep) : this.ids();
    const ids = Int32Array.from([...before, ...prompt]);
    const sequence = checked(this.#model.engine.startSequence(ids, options));
    this.#free();
    this.#sequence = sequence;
    return sequence;
  }

  end(dropped: number): void {
    this.run = undefined;
    const sequence = this.#sequence;
    if (!sequence) return;
    sequence.setPaused(true);
    if (dropped > 0) checkStatus(sequence.truncate(Math.max(0, this.size - dropped)));
    // It computes nothing more, but its ids can be computed by another.
    if (sequence.status().code !== '') {
      this.#ids = this.ids();
      this.#free();
    }
  }

  /** @throws InvalidArgumentError */
  truncate(size: number): void {
    if (size > this.size) {
      throw new InvalidArgumentError(
        `size must be an integer from 0 to ${this.size}, the session's tokens, not ${size}.`,
      );
    }
    if (this.#sequence) checkStatus(this.#sequence.truncate(size));
    else this.#ids = this.#ids.slice(0, size);
  }

  fork(): SessionContext {
    const sequence = this.#sequence && checked(this.#sequence.fork());
    const fork = new SessionContext(this.#model, sequence);
    fork.#ids = this.#ids;
    return fork;
  }

  /** @throws InvalidArgumentError */
  save(): Uint8Array<ArrayBuffer> {
    if (!this.#sequence) {
      throw new InvalidArgumentError('The session has computed nothing that could be saved.');
    }
    checkStatus(this.#sequence.save());
    return this.#sequence.takeSaved();
  }

  delete(): void {
    this.#free();
  }

  /** What a shift leaves before a prompt: half a context with it, but for a longer prompt, which stays whole. */
  #shifted(promptSize: number, nKeep: number): Int32Array {
    const ids = this.ids();
    const half = Math.max(Math.floor(this.#model.info.contextLength / 2), 1);
    const latest = Math.max(half - nKeep - promptSize, 0);
    const from = Math.max(ids.length - latest, nKeep);
    return Int32Array.from([...ids.subarray(0, nKeep), ...ids.subarray(from)]);
  }

  #free(): void {
    this.#sequence?.delete();
    this.#sequence = undefined;
  }
}

/** The sessions of one engine, by their numbers. A number that is not there is an empty session. */
export class Sessions {
  readonly #model: LoadedModel;
  readonly #scheduler: Scheduler;
  readonly #sessions = new Map<number, SessionContext>();

  constructor(model: LoadedModel, scheduler: Scheduler) {
    this.#model = model;
    this.#scheduler = scheduler;
  }

  /** @throws GenerationError `busy` */
  generate(call: number, session: number, request: GenerateRequest): void {
    const context = this.#idle(session);
    const runContext: RunContext = {
      size: context.size,
      begin(prompt, options) {
        const sequence = context.begin(prompt, options);
        context.run = call;
        return sequence;
      },
      end: dropped => context.end(dropped),
    };
    this.#scheduler.add(call, host => new Run(this.#model, request, runContext, host));
  }

  ids(session: number): Int32Array<ArrayBuffer> {
    return this.#get(session).ids();
  }

  /** @throws GenerationError `busy`, InvalidArgumentError */
  truncate(session: number, size: number): void {
    this.#idle(session).truncate(size);
  }

  /** @throws GenerationError `busy`, `out-of-memory` */
  fork(session: number, fork: number): void {
    this.#sessions.set(fork, this.#idle(session).fork());
  }

  /** @throws GenerationError `busy`, `out-of-memory`; InvalidArgumentError */
  save(session: number): Uint8Array<ArrayBuffer> {
    return this.#idle(session).save();
  }

  /** @throws InvalidArgumentError, GenerationError `out-of-memory` */
  restore(session: number, bytes: Uint8Array): void {
    const sequence = checked(this.#model.engine.restoreSequence(bytes));
    this.#sessions.set(session, new SessionContext(this.#model, sequence));
  }

  drop(session: number): void {
    const context = this.#sessions.get(session);
    if (!context) return;
    if (context.run !== undefined) {
      this.#scheduler.fail(context.run, errorFor('disposed', 'The session was disposed.'));
    }
    context.delete();
    this.#sessions.delete(session);
  }

  #get(session: number): SessionContext {
    let context = this.#sessions.get(session);
    if (!context) {
      context = new SessionContext(this.#model);
      this.#sessions.set(session, context);
    }
    return context;
  }

  #idle(session: number): SessionContext {
    const context = this.#get(session);
    if (context.run === undefined) return context;
    throw errorFor('busy', 'The session is generating; it does one thing at a time.');
  }
}
