import type { CacheStrategy, Engine, MemoryReport } from 'kvasm';
import { byId, make } from '../lib/dom.ts';
import { FramePainter } from '../lib/frame.ts';
import { BlockTable } from './block-table.ts';
import { type CacheMoment, CacheWatch } from './cache-watch.ts';
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
  readonly #timeline = new Timeline(moment => this.#show(moment));
  readonly #painter = new FramePainter(() => this.#paint());
  readonly #live = make('input', { type: 'checkbox', id: 'live-view', checked: true });
  #moment: CacheMoment | undefined;
  #watch: CacheWatch | undefined;

  constructor() {
    const live = make('label', { class: 'live-choice' }, this.#live, 'Follow each token');
    this.#timeline.element.append(live);
    byId('cache-live', HTMLElement).append(this.#grid.element, this.#timeline.element);
    byId('cache-table', HTMLElement).append(this.#table.element);
    this.#memory.clear();
  }

  /** @param engine Undefined once the model is gone. */
  async setEngine(engine: Engine | undefined): Promise<void> {
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

  /** A run begins, of which the replay is to be. */
  restart(strategy: CacheStrategy): void {
    byId('kv-note', HTMLElement).textContent = notes[strategy];
    this.#timeline.restart();
  }

  /** As often as tokens come. */
  poll(): void {
    if (this.#live.checked) this.#watch?.poll();
  }

  /** Shows the cache as it is now. */
  async settle(): Promise<void> {
    await this.#watch?.settle();
    this.#grid.flush();
    this.#painter.now();
  }

  /** Of a run whose cache is not in the blocks. */
  showMemory(report: MemoryReport): void {
    this.#memory.show(report);
  }

  #show(moment: CacheMoment): void {
    this.#moment = moment;
    this.#grid.show(moment);
    this.#painter.request();
  }

  #paint(): void {
    this.#timeline.refresh();
    if (!this.#moment) return;
    this.#memory.show(this.#moment.memory);
    this.#table.show(this.#moment.view);
  }
}
