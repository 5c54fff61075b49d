/**
 * Gives way to messages that have arrived meanwhile. By messages of its own, because browsers hold timers and frames of
 * hidden pages back, and because promises alone let no message through.
 */
export class Turns {
  readonly #channel = new MessageChannel();
  #resolve: () => void = () => {};
  #sender: MessagePort;

  constructor() {
    const { port1, port2 } = this.#channel;
    this.#sender = port1;
    // There and back in turn: Node serves up to a thousand messages of one port before it looks at the next port.
    port1.onmessage = () => this.#arrive(port1);
    port2.onmessage = () => this.#arrive(port2);
  }

  /** For one caller at a time. */
  next(): Promise<void> {
    return new Promise(resolve => {
      this.#resolve = resolve;
      this.#sender.postMessage(undefined);
    });
  }

  close(): void {
    this.#channel.port1.close();
  }

  #arrive(port: MessagePort): void {
    this.#sender = port;
    this.#resolve();
  }
}
