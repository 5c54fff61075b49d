import type { CacheRecording, CacheView, Engine } from 'kvasm';
import { FramePainter } from '../lib/frame.ts';
import { type CacheEvent, cacheEvents } from './cache-events.ts';
import { describeEvents } from './describe-event.ts';

// Every second paint of a text: the blocks are looked at, and not read.
const leastInterval = 90;

/** The cache at one moment, and what has happened since the moment before. */
export class CacheMoment {
  readonly view: CacheView;
  /** Keys that a token sees; undefined for all. */
  readonly window: number | undefined;
  readonly events: readonly CacheEvent[];
  /** What the line is about. */
  readonly #told: readonly CacheEvent[];

  constructor(view: CacheView, window: number | undefined, before: CacheMoment | undefined) {
    this.view = view;
    this.window = window;
    this.events = before ? cacheEvents(before.view, view) : [];
    this.#told = this.events.length > 0 ? this.events : before ? before.#told : [];
  }

  /** The events in one line; those of the moment before where nothing has happened. Made when it is asked for. */
  get line(): string {
    return describeEvents(this.#told);
  }
}

/** Looks at an engine's cache when it is told to: while it records, at each step since; else at what is there then. */
export class CacheWatch {
  readonly #engine: Engine;
  readonly #onMoment: (moment: CacheMoment) => void;
  readonly #asker = new FramePainter(() => void this.#ask());
  #recording: Promise<CacheRecording> | undefined;
  #last: CacheMoment | undefined;
  #asking = false;
  #notBefore = 0;

  /** @param recording One that has begun. */
  constructor(engine: Engine, onMoment: (moment: CacheMoment) => void, recording?: CacheRecording) {
    this.#engine = engine;
    this.#onMoment = onMoment;
    this.#recording = recording && Promise.resolve(recording);
  }

  /** Begins to record, if it does not yet. Never rejects, as all here: whoever runs the engine tells of its end. */
  async record(): Promise<void> {
    this.#recording ??= this.#engine.recordCache();
    await this.#recording.catch(() => {
      this.#recording = undefined;
    });
  }

  async stop(): Promise<void> {
    const recording = this.#recording;
    this.#recording = undefined;
    await recording?.then(
      begun => begun.stop(),
      () => {},
    );
  }

  /** Something may have happened. Called for each token; looks ten times a second at the most, and only while it records. */
  poll(): void {
    this.#asker.request();
  }

  /** Resolves once all that has happened until now was seen. */
  settle(): Promise<void> {
    return this.#look();
  }

  async #ask(): Promise<void> {
    if (this.#asking || !this.#recording) return;
    const now = performance.now();
    if (now < this.#notBefore) {
      this.#asker.request();
      return;
    }
    this.#notBefore = now + leastInterval;
    this.#asking = true;
    await this.#look();
    this.#asking = false;
  }

  async #look(): Promise<void> {
    try {
      const recording = await this.#recording;
      const views = recording ? await recording.take() : [await this.#engine.cacheView()];
      for (const view of views) this.#tell(view);
    } catch {
      // The engine is gone.
    }
  }

  #tell(view: CacheView): void {
    this.#last = new CacheMoment(view, this.#engine.info.window, this.#last);
    this.#onMoment(this.#last);
  }
}
