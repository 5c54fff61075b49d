import type { CacheStrategy, Engine, MemoryReport } from 'kvasm';
import { byId, make } from '../lib/dom.ts';
import { FramePainter } from '../lib/frame.ts';
import { BlockTable } from './block-table.ts';
import { type CacheMoment, CacheWatch } from './cache-watch.ts';
import { kvTokens } from './kv-tokens.ts';
import { LiveGrid } from './live-grid.ts';
import { MemoryView } from './memory-view.ts';
import { Timeline } from './timeline.ts';

const notes: Record<CacheStrategy, string> = {
  block: '',
  concat:
    'This run keeps its keys and values in one piece beside the blocks, made anew at each token.',
  none: 'This run keeps no keys and values: the blocks stay as they are.',
};

/** All that the playground shows of the cache. */
export class CachePanel {
  readonly #grid = new LiveGrid('Blocks of the cache');
  readonly #table = new BlockTable();
  readonly #memory = new MemoryView();
  readonly #timeline = new Timeline({
    onFollow: moment => this.#show(moment),
    onSeek: moment => {
      this.#show(moment);
      this.#flush();
    },
  });
  readonly #painter = new FramePainter(() => this.#paint());
  readonly #memoryAsker = new FramePainter(() => {
    if (this.#running) void this.#askMemory();
  });
  readonly #live = make('input', { type: 'checkbox', id: 'live-view', checked: true });
  #engine: Engine | undefined;
  #watch: CacheWatch | undefined;
  #moment: CacheMoment | undefined;
  #strategy: CacheStrategy = 'block';
  #running = false;

  constructor() {
    const live = make('label', { class: 'live-choice' }, this.#live, 'Follow each token');
    this.#live.addEventListener('change', () => {
      if (this.#running) void this.#record();
    });
    this.#timeline.element.append(live);
    byId('cache-live', HTMLElement).append(this.#grid.element, this.#timeline.element);
    byId('cache-table', HTMLElement).append(this.#table.element);
    this.#memory.clear();
  }

  /** @param engine Undefined once the model is gone. */
  async setEngine(engine: Engine | undefined): Promise<void> {
    this.#engine = engine;
    this.#watch = undefined;
    this.#moment = undefined;
    this.#timeline.clear();
    this.#grid.clear();
    this.#table.clear();
    this.#memory.clear();
    if (!engine) return;
    this.#memory.showModel(engine.info, await engine.memory());
    this.#watch = new CacheWatch(engine, moment => {
      this.#timeline.add(moment);
      this.#painter.request();
    });
    await this.settle();
  }

  /** A run is about to begin, of which the replay is to be. */
  async restart(strategy: CacheStrategy): Promise<void> {
    this.#strategy = strategy;
    byId('kv-note', HTMLElement).textContent = notes[strategy];
    this.#timeline.restart();
    await this.goOn();
  }

  /** A run is about to begin, or to go on. */
  async goOn(): Promise<void> {
    this.#running = true;
    await this.#record();
  }

  /** As often as tokens come. */
  poll(): void {
    if (!this.#live.checked) return;
    if (this.#strategy === 'block') this.#watch?.poll();
    else this.#memoryAsker.request();
  }

  /**
   * The run is over: shows the cache as it is now.
   * @param memory At the end of the run, if that is to be shown in place of what is there now.
   */
  async settle(memory?: MemoryReport): Promise<void> {
    this.#running = false;
    await this.#watch?.settle();
    await this.#record();
    await this.#askMemory();
    this.#flush();
    if (memory) this.#memory.show(memory);
  }

  /** Records while a run goes on, if it is to be followed, and its cache is in the blocks. */
  async #record(): Promise<void> {
    const watch = this.#watch;
    if (!watch) return;
    const wanted = this.#running && this.#live.checked && this.#strategy === 'block';
    if (wanted) await watch.record();
    else await watch.stop();
  }

  /** Never rejects: whoever runs the engine tells of its end. */
  async #askMemory(): Promise<void> {
    const report = await this.#engine?.memory().catch(() => undefined);
    if (report) this.#memory.show(report);
  }

  #show(moment: CacheMoment): void {
    this.#moment = moment;
    this.#grid.show(moment);
    this.#painter.request();
  }

  #flush(): void {
    this.#grid.flush();
    this.#painter.now();
  }

  #paint(): void {
    this.#timeline.refresh();
    if (!this.#moment) return;
    this.#memory.showMoment(kvTokens(this.#moment.view));
    this.#table.show(this.#moment.view);
  }
}
