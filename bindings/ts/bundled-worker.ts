import { Deferred } from './deferred.js';
import type { WorkerHandle } from './platform.js';
import { type ClientMessage, describeThrown, type WorkerMessage } from './protocol.js';

/** A bundle's Worker: what its bundler has emitted, or, if that does not start, the copy inside the bundle. */
export class BundledWorker implements WorkerHandle {
  readonly #startEmbedded: () => Promise<WorkerHandle>;
  readonly #settled = new Deferred<void>();
  #worker: WorkerHandle | undefined;
  #heard = false;
  #terminated = false;
  #listener: (message: WorkerMessage) => void = () => {};
  #fail: (reason: string) => void = () => {};

  /** What `startEmitted` throws counts as a Worker that does not start. */
  constructor(startEmitted: () => WorkerHandle, startEmbedded: () => Promise<WorkerHandle>) {
    this.#startEmbedded = startEmbedded;
    try {
      this.#use(startEmitted(), reason => void this.#fallBack(reason));
    } catch (cause) {
      void this.#fallBack(describeThrown(cause));
    }
  }

  get settled(): Promise<void> {
    return this.#settled.promise;
  }

  post(message: ClientMessage, transfer: Transferable[]): void {
    this.#worker?.post(message, transfer);
  }

  onMessage(listener: (message: WorkerMessage) => void): void {
    this.#listener = listener;
  }

  onFailure(listener: (reason: string) => void): void {
    this.#fail = listener;
  }

  watch(lock: string): void {
    this.#worker?.watch?.(lock);
  }

  setBusy(): void {}

  async terminate(): Promise<void> {
    this.#terminated = true;
    this.#settled.resolve();
    await this.#worker?.terminate();
  }

  #use(worker: WorkerHandle, notStarted: (reason: string) => void): void {
    this.#worker = worker;
    worker.onMessage(message => {
      this.#heard = true;
      this.#settled.resolve();
      this.#listener(message);
    });
    worker.onFailure(reason => {
      if (this.#heard) this.#fail(reason);
      else notStarted(reason);
    });
  }

  async #fallBack(emitted: string): Promise<void> {
    const notStarted = (reason: string) => {
      this.#fail(
        `${emitted}; nor did its copy in the bundle: ${reason}. Put a copy of the package's dist folder on your site, and ` +
          'name the kvasm-worker.js in it by the option workerUrl',
      );
      this.#settled.resolve();
    };
    try {
      await this.#worker?.terminate();
      const worker = await this.#startEmbedded();
      if (this.#terminated) await worker.terminate();
      else this.#use(worker, notStarted);
    } catch (cause) {
      notStarted(describeThrown(cause));
    }
  }
}
