import type { ClientMessage, WorkerMessage } from './protocol.js';
import type { Places } from './source.js';

/** The client's end of a Worker that runs worker/host.ts. */
export interface WorkerHandle {
  /** Resolves when messages can be posted, or the listener of `onFailure` was told why not. Default: they can at once. */
  readonly settled?: Promise<void>;
  post(message: ClientMessage, transfer: Transferable[]): void;
  /** Sets the only listener. */
  onMessage(listener: (message: WorkerMessage) => void): void;
  /** Sets the only listener for the Worker's end, whether it could not start, died or was ended by another. */
  onFailure(listener: (reason: string) => void): void;
  /** Tells the listener of `onFailure` when the Worker no longer holds the lock. */
  watch?(lock: string): void;
  /** Whether somebody waits for an answer. In Node a Worker that nobody waits for does not keep the process alive. */
  setBusy(busy: boolean): void;
  /** Resolves when the Worker is gone. */
  terminate(): Promise<void>;
}

/** What differs between browsers and Node. */
export interface Platform extends Places {
  /** @throws ModelError `load-failed` when the Worker cannot be made. */
  spawn(workerUrl: string | undefined): WorkerHandle;
  /** An option's URL as the Worker can use it. @throws InvalidArgumentError */
  resolveUrl(name: string, url: string | URL): string;
  /** A directory's path as the Worker can use it. @throws InvalidArgumentError */
  resolveDirectory(path: string): string;
}
