/** A promise that is settled from outside. Nobody has to wait for it: its rejection is never unhandled. */
export class Deferred<T> {
  readonly promise: Promise<T>;
  // The executor runs before the constructor returns.
  resolve!: (value: T) => void;
  reject!: (reason: unknown) => void;

  constructor() {
    this.promise = new Promise((resolve, reject) => {
      this.resolve = resolve;
      this.reject = reject;
    });
    this.promise.catch(() => {});
  }
}
