import { KvasmError } from '../errors.js';
import {
  type ClientMessage,
  describeThrown,
  type LoadRequest,
  packError,
  type WorkerMessage,
} from '../protocol.js';
import { type LoadedModel, loadModel, type WorkerEnvironment } from './load.js';
import { reportMemory } from './memory.js';
import { GenerationQueue } from './queue.js';

/** The Worker's end of the line to its client. */
export interface WorkerPort {
  post(message: WorkerMessage): void;
  /** Sets the only listener. */
  onMessage(listener: (message: ClientMessage) => void): void;
}

/**
 * The Worker: one engine, and what the client asks of it.
 * @returns A function that ends all work.
 */
export function serve(port: WorkerPort, environment: WorkerEnvironment): () => void {
  const host = new Host(port, environment);
  port.onMessage(message => host.receive(message));
  return () => host.close();
}

class Host {
  readonly #port: WorkerPort;
  readonly #environment: WorkerEnvironment;
  #model: LoadedModel | undefined;
  #queue: GenerationQueue | undefined;
  #closed = false;

  constructor(port: WorkerPort, environment: WorkerEnvironment) {
    this.#port = port;
    this.#environment = environment;
  }

  close(): void {
    this.#closed = true;
    this.#queue?.close();
  }

  receive(message: ClientMessage): void {
    if (this.#closed) return;
    switch (message.type) {
      case 'load':
        void this.#load(message.id, message.request);
        break;
      case 'generate':
        this.#queue?.add(message.id, message.request);
        break;
      case 'taken':
        this.#queue?.taken(message.id, message.count);
        break;
      case 'cancel':
        this.#queue?.cancel(message.id);
        break;
      case 'memory':
        this.#reportMemory(message.id);
        break;
    }
  }

  readonly #post = (message: WorkerMessage) => {
    if (!this.#closed) this.#port.post(message);
  };

  readonly #crash = (error: unknown) => {
    this.#post({ type: 'crashed', reason: describeThrown(error) });
    this.close();
  };

  async #load(id: number, request: LoadRequest): Promise<void> {
    try {
      const model = await loadModel(request, this.#environment, progress =>
        this.#post({ type: 'progress', id, progress }),
      );
      this.#model = model;
      this.#queue = new GenerationQueue(model, this.#post, this.#crash);
      this.#post({ type: 'loaded', id, info: model.info });
    } catch (error) {
      this.#fail(id, error);
    }
  }

  #reportMemory(id: number): void {
    if (!this.#model) return;
    try {
      this.#post({ type: 'memory', id, memory: reportMemory(this.#model) });
    } catch (error) {
      this.#fail(id, error);
    }
  }

  #fail(id: number, error: unknown): void {
    if (error instanceof KvasmError) this.#post({ type: 'failed', id, error: packError(error) });
    else this.#crash(error);
  }
}
