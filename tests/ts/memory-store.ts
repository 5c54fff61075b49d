import type { ModelStore } from '../../bindings/ts/types.js';

/** Keeps byte strings in memory, and fails on request. */
export class MemoryStore implements ModelStore {
  readonly bytes = new Map<string, Uint8Array>();
  /** Bytes that there is room for. */
  room = Number.POSITIVE_INFINITY;
  failing: Error | undefined;

  async get(name: string) {
    this.#check();
    return this.bytes.get(name);
  }

  async put(name: string, bytes: Uint8Array) {
    this.#check();
    const { size } = this;
    if (size + bytes.length > this.room) throw new DOMException('full', 'QuotaExceededError');
    this.bytes.set(name, new Uint8Array(bytes));
  }

  async delete(name: string) {
    this.bytes.delete(name);
  }

  async list() {
    this.#check();
    return Array.from(this.bytes, ([name, { length: size }]) => ({ name, size }));
  }

  get size(): number {
    let sum = 0;
    for (const { length } of this.bytes.values()) sum += length;
    return sum;
  }

  #check(): void {
    if (this.failing) throw this.failing;
  }
}
