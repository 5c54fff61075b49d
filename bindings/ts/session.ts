import { checkInteger } from './checks.js';
import type { WorkerClient } from './client.js';
import { asyncDispose } from './dispose.js';
import { EngineClosedError } from './errors.js';
import { type LoadedEngine, startGeneration } from './generation.js';
import type { CallName, Calls } from './protocol.js';
import type { GenerateOptions, Generation, Prompt, Session } from './types.js';

interface Held {
  readonly client: WorkerClient;
  readonly session: number;
}

/** Sessions that nobody can reach any more give their blocks back, even if nobody has disposed of them. */
const unreachable = new FinalizationRegistry<Held>(({ client, session }) =>
  client.dropSession(session),
);

/** A session whose context is in the Worker, under a number. */
export class WorkerSession implements Session {
  readonly #loaded: LoadedEngine;
  readonly #session: number;
  #disposed: EngineClosedError | undefined;

  constructor(loaded: LoadedEngine, session: number) {
    this.#loaded = loaded;
    this.#session = session;
    unreachable.register(this, { client: loaded.client, session }, this);
  }

  generate(prompt: Prompt, options: GenerateOptions = {}): Generation {
    return startGeneration(this.#loaded, prompt, options, {
      id: this.#session,
      check: () => this.#check(),
    });
  }

  ids(): Promise<Int32Array> {
    return this.#call('ids', { session: this.#session });
  }

  async truncate(size: number): Promise<void> {
    checkInteger('size', size, 0, Number.MAX_SAFE_INTEGER);
    await this.#call('truncate', { session: this.#session, size });
  }

  async fork(): Promise<Session> {
    const fork = this.#loaded.client.newSession();
    await this.#call('fork', { session: this.#session, fork });
    return new WorkerSession(this.#loaded, fork);
  }

  save(): Promise<Uint8Array> {
    return this.#call('save', { session: this.#session });
  }

  async dispose(): Promise<void> {
    if (this.#disposed) return;
    this.#disposed = new EngineClosedError('disposed', 'The session was disposed.');
    unreachable.unregister(this);
    this.#loaded.client.dropSession(this.#session);
  }

  [asyncDispose](): Promise<void> {
    return this.dispose();
  }

  #check(): void {
    if (this.#disposed) throw this.#disposed;
  }

  async #call<Name extends CallName>(
    type: Name,
    request: Calls[Name]['request'],
  ): Promise<Calls[Name]['answer']> {
    this.#check();
    return this.#loaded.client.call(type, request);
  }
}
