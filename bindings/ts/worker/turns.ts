/**
 * Gives way to messages that have arrived meanwhile. By a message of its own, because browsers hold timers and frames of
 * hidden pages back, and because promises alone let no message through.
 */
export class Turns {
  readonly #channel = new MessageChannel();
  #resolve: () => void = () => {};

  constructor() {
    this.#channel.port1.onmessage = () => this.#resolve();
  }

  /** For one caller at a time. */
  next(): Promise<void> {
    return new Promise(resolve => {
      this.#resolve = resolve;
      this.#channel.port2.postMessage(undefined);
    });
  }

  close(): void {
    this.#channel.port1.close();
  }
}
