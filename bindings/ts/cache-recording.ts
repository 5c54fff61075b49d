/// <reference lib="esnext.disposable" preserve="true" />

import type { CacheView } from './cache-view.js';
import { decodeCacheViews } from './cache-view-decoder.js';
import type { WorkerClient } from './client.js';
import { asyncDispose } from './dispose.js';
import type { LoadedEngine } from './generation.js';

/** The key/value cache, step by step. Made by `Engine.recordCache`. */
export interface CacheRecording {
  /**
   * What the cache was since the last call, in order: the first time from the start of the recording on. Ask as rarely as
   * you draw: each step of the engine has a view (a prompt's steps have many tokens), and so has what was done between
   * two steps. What is the same in two views that follow each other is one object. Views that nobody takes are kept in
   * the Worker, up to 16 MiB of them; then the oldest go. Empty when nothing has changed, and after `stop`.
   * @throws EngineClosedError
   */
  take(): Promise<CacheView[]>;
  /** Ends the recording. Does nothing on one that has ended. */
  stop(): Promise<void>;
  /** So that `await using` ends the recording. */
  [Symbol.asyncDispose](): Promise<void>;
}

interface Held {
  readonly client: WorkerClient;
  readonly recording: number;
}

/** Recordings that nobody can reach any more end, even if nobody has stopped them. */
const unreachable = new FinalizationRegistry<Held>(({ client, recording }) =>
  client.stopRecording(recording),
);

/** A recording that is in the Worker, under a number. */
export class WorkerCacheRecording implements CacheRecording {
  readonly #loaded: LoadedEngine;
  readonly #recording: number;
  #last: CacheView | undefined;
  #stopped = false;

  private constructor(loaded: LoadedEngine, recording: number) {
    this.#loaded = loaded;
    this.#recording = recording;
    unreachable.register(this, { client: loaded.client, recording }, this);
  }

  static async start(loaded: LoadedEngine): Promise<WorkerCacheRecording> {
    const recording = loaded.client.newRecording();
    await loaded.client.call('recordCache', { recording });
    return new WorkerCacheRecording(loaded, recording);
  }

  async take(): Promise<CacheView[]> {
    if (this.#stopped) return [];
    const recording = this.#recording;
    const numbers = await this.#loaded.client.call('takeRecorded', { recording });
    // Here, and not before the wait: another call may have been answered meanwhile.
    const views = decodeCacheViews(numbers, this.#last);
    this.#last = views.at(-1) ?? this.#last;
    return views;
  }

  async stop(): Promise<void> {
    if (this.#stopped) return;
    this.#stopped = true;
    unreachable.unregister(this);
    this.#loaded.client.stopRecording(this.#recording);
  }

  [asyncDispose](): Promise<void> {
    return this.stop();
  }
}
