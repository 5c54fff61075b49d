import { Deferred } from './deferred.js';
import { EngineClosedError, errorFor, type KvasmError } from './errors.js';
import type { WorkerHandle } from './platform.js';
import {
  type CallMessage,
  type CallName,
  type Calls,
  type ClientMessage,
  type GenerateRequest,
  type GenerateSummary,
  type LoadRequest,
  unpackError,
  type WorkerMessage,
} from './protocol.js';
import type { EngineInfo, GenerateChunk, LoadOptions, LoadProgress, LoadWarning } from './types.js';

/** Where a generation's messages go; the last call is `finish` or `fail`. */
export interface GenerationSink {
  /** First, with the id of its sequence. */
  started(sequence: number): void;
  chunk(chunk: GenerateChunk): void;
  finish(summary: GenerateSummary): void;
  fail(error: unknown): void;
}

/** How a generation steers its run in the Worker. */
export interface GenerationControl {
  taken(count: number): void;
  cancel(): void;
}

/** Speaks with one Worker: sends the calls, hands the answers to whom they belong, and ends with it. */
export class WorkerClient {
  readonly #worker: WorkerHandle;
  readonly #calls = new Map<number, Deferred<Calls[CallName]['answer']>>();
  readonly #generations = new Map<number, GenerationSink>();
  #onProgress: ((progress: LoadProgress) => void) | undefined;
  #onWarning: ((warning: LoadWarning) => void) | undefined;
  #heard = false;
  #abandoned = false;
  #closed: KvasmError | undefined;
  #terminated: Promise<void> | undefined;
  #holds = 0;
  #lastId = 0;
  #lastSession = 0;
  #lastRecording = 0;

  constructor(worker: WorkerHandle) {
    this.#worker = worker;
    worker.setBusy(false);
    worker.onMessage(message => this.#receive(message));
    worker.onFailure(reason => this.#fail(reason));
  }

  /** The load, and nothing else before it has resolved. */
  async load(request: LoadRequest, { onProgress, onWarning }: LoadOptions): Promise<EngineInfo> {
    this.#onProgress = onProgress;
    this.#onWarning = onWarning ?? (({ message }) => console.warn(`kvasm: ${message}`));
    const transfer: Transferable[] = [];
    const { model, download } = request;
    for (const file of model.kind === 'files' ? Object.values(model.files) : []) {
      // locateFile has made the copy in a buffer of its own.
      if (file.kind === 'bytes') transfer.push(file.bytes.buffer as ArrayBuffer);
      if (file.kind === 'stream') transfer.push(file.port);
    }
    if (download.storage.kind === 'store') transfer.push(download.storage.port);
    try {
      await this.#worker.settled;
      return await this.call('load', request, transfer);
    } catch (cause) {
      if (!(cause instanceof DOMException && cause.name === 'DataCloneError')) throw cause;
      throw errorFor('load-failed', 'A file cannot be sent to the worker.', { cause });
    }
  }

  /** Rejects with what the Worker says, or with what closed it; also with a DataCloneError. */
  async call<Name extends CallName>(
    type: Name,
    request: Calls[Name]['request'],
    transfer: Transferable[] = [],
    signal?: AbortSignal,
  ): Promise<Calls[Name]['answer']> {
    signal?.throwIfAborted();
    if (this.#closed) throw this.#closed;
    const id = ++this.#lastId;
    const answer = new Deferred<Calls[CallName]['answer']>();
    // TypeScript does not follow a type parameter into a union.
    this.#worker.post({ type, id, request } as CallMessage, transfer);
    this.#calls.set(id, answer);
    const abort = () => {
      if (!this.#calls.delete(id)) return;
      this.#worker.post({ type: 'cancel', id }, []);
      answer.reject(signal?.reason);
      this.#closeIfAbandoned();
    };
    signal?.addEventListener('abort', abort);
    try {
      return (await this.hold(answer.promise)) as Calls[Name]['answer'];
    } finally {
      signal?.removeEventListener('abort', abort);
    }
  }

  /** What closed it, if something did. */
  get closed(): KvasmError | undefined {
    return this.#closed;
  }

  /** A number for a session that this Worker does not have yet. */
  newSession(): number {
    return ++this.#lastSession;
  }

  dropSession(session: number): void {
    if (!this.#closed) this.#worker.post({ type: 'drop', session }, []);
  }

  /** A number for a recording that this Worker does not have yet. */
  newRecording(): number {
    return ++this.#lastRecording;
  }

  stopRecording(recording: number): void {
    if (!this.#closed) this.#worker.post({ type: 'stopRecording', recording }, []);
  }

  generate(
    request: GenerateRequest,
    session: number | undefined,
    sink: GenerationSink,
  ): GenerationControl {
    if (this.#closed) {
      sink.fail(this.#closed);
      return { taken() {}, cancel() {} };
    }
    const id = ++this.#lastId;
    this.#generations.set(id, sink);
    this.#worker.post({ type: 'generate', id, request, session }, []);
    const send = (message: ClientMessage) => {
      if (this.#generations.has(id)) this.#worker.post(message, []);
    };
    return {
      taken: count => send({ type: 'taken', id, count }),
      cancel: () => {
        send({ type: 'cancel', id });
        this.#generations.delete(id);
        this.#closeIfAbandoned();
      },
    };
  }

  /** Keeps the process alive until the promise has settled. */
  hold<T>(promise: Promise<T>): Promise<T> {
    if (this.#holds++ === 0) this.#worker.setBusy(true);
    const release = () => {
      if (--this.#holds === 0) this.#worker.setBusy(false);
    };
    promise.then(release, release);
    return promise;
  }

  /** Ends the Worker; every call that waits, or comes later, rejects with the error. The first error counts. */
  close(error: KvasmError): Promise<void> {
    if (this.#terminated) return this.#terminated;
    this.#closed = error;
    this.#terminated = this.#worker.terminate();
    for (const call of this.#calls.values()) call.reject(error);
    for (const sink of this.#generations.values()) sink.fail(error);
    this.#calls.clear();
    this.#generations.clear();
    return this.#terminated;
  }

  /** Nobody can make another call: ends the Worker as soon as no call waits any more. */
  abandon(): void {
    this.#abandoned = true;
    this.#closeIfAbandoned();
  }

  #closeIfAbandoned(): void {
    if (!this.#abandoned || this.#calls.size > 0 || this.#generations.size > 0) return;
    void this.close(new EngineClosedError('disposed', 'Nobody had the engine any more.'));
  }

  #receive(message: WorkerMessage): void {
    this.#heard = true;
    if (this.#closed) return;
    switch (message.type) {
      case 'ready':
        break;
      case 'alive':
        this.#worker.watch?.(message.lock);
        break;
      case 'progress':
        this.#tell(message.id, () => this.#onProgress?.(message.progress));
        break;
      case 'warning':
        this.#tell(message.id, () => this.#onWarning?.(message.warning));
        break;
      case 'answer':
        this.#answer(message.id)?.resolve(message.answer);
        break;
      case 'started':
        this.#generations.get(message.id)?.started(message.sequence);
        break;
      case 'chunk':
        this.#generations.get(message.id)?.chunk(message.chunk);
        break;
      case 'finished':
        this.#generation(message.id)?.finish(message.summary);
        break;
      case 'failed': {
        const error = unpackError(message.error);
        this.#answer(message.id)?.reject(error);
        this.#generation(message.id)?.fail(error);
        break;
      }
      case 'crashed':
        this.#fail(message.reason);
        break;
    }
  }

  /** What the user's own function throws ends the call. */
  #tell(id: number, call: () => void): void {
    try {
      call();
    } catch (error) {
      this.#answer(id)?.reject(error);
    }
  }

  #answer(id: number): Deferred<Calls[CallName]['answer']> | undefined {
    const call = this.#calls.get(id);
    this.#calls.delete(id);
    this.#closeIfAbandoned();
    return call;
  }

  #generation(id: number): GenerationSink | undefined {
    const sink = this.#generations.get(id);
    this.#generations.delete(id);
    this.#closeIfAbandoned();
    return sink;
  }

  #fail(reason: string): void {
    const error = this.#heard
      ? new EngineClosedError(
          'crashed',
          `The engine's worker died (${reason}). Load a new engine to go on.`,
        )
      : errorFor('load-failed', `The engine's worker did not start (${reason}).`);
    void this.close(error);
  }
}
