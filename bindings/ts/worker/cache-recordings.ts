import type { WasmEngine } from '../wasm-module.js';

// 16 MiB: at the default size of the pool, all steps of a run ten times over.
const mostNumbers = 1 << 22;

/** Views of the cache in the order in which they were, as WasmEngine.cacheView lays them out. */
class Recording {
  #views: Int32Array[] = [];
  #length = 0;

  add(view: Int32Array): void {
    this.#views.push(view);
    this.#length += view.length;
    // Nobody has asked for a long time. The latest stays, whatever its size.
    while (this.#length > mostNumbers && this.#views.length > 1) {
      this.#length -= this.#views.shift()?.length ?? 0;
    }
  }

  take(): Int32Array<ArrayBuffer> {
    const all = new Int32Array(this.#length);
    let at = 0;
    for (const view of this.#views) {
      all.set(view, at);
      at += view.length;
    }
    this.#views = [];
    this.#length = 0;
    return all;
  }
}

/** Who wants to see each step of the cache. They go by numbers that the client gives them. */
export class CacheRecordings {
  readonly #engine: Pick<WasmEngine, 'cacheView'>;
  readonly #recordings = new Map<number, Recording>();
  #last: Int32Array | undefined;

  constructor(engine: Pick<WasmEngine, 'cacheView'>) {
    this.#engine = engine;
  }

  /** Begins with the cache as it is. */
  start(id: number): void {
    this.record();
    const recording = new Recording();
    this.#last ??= this.#engine.cacheView().slice();
    recording.add(this.#last);
    this.#recordings.set(id, recording);
  }

  /** Something may have changed. Called at each step, so that it has to be fast. */
  record(): void {
    if (this.#recordings.size === 0) return;
    const view = this.#engine.cacheView();
    const last = this.#last;
    if (last?.length === view.length && last.every((number, i) => number === view[i])) return;
    // A copy, in memory that is this Worker's alone.
    this.#last = view.slice();
    for (const recording of this.#recordings.values()) recording.add(this.#last);
  }

  /** What was recorded since the last time; nothing of a recording that has ended. */
  take(id: number): Int32Array<ArrayBuffer> {
    this.record();
    return this.#recordings.get(id)?.take() ?? new Int32Array();
  }

  stop(id: number): void {
    this.#recordings.delete(id);
    if (this.#recordings.size === 0) this.#last = undefined;
  }
}
