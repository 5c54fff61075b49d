import type { CacheStrategy, MemoryReport, ModelConfig } from 'kvasm';
import { byId, showData } from './dom.ts';
import { formatBytes, formatInteger } from './format.ts';
import { FramePainter } from './frame.ts';

const dash = '–';

/** The memory of the cache in numbers. */
export class CacheView {
  readonly #used = byId('kv-used', HTMLDataElement);
  readonly #reserved = byId('kv-reserved', HTMLDataElement);
  readonly #usedBytes = byId('kv-used-bytes', HTMLDataElement);
  readonly #tokens = byId('kv-tokens', HTMLDataElement);
  readonly #perToken = byId('kv-per-token', HTMLDataElement);
  readonly #weights = byId('memory-weights', HTMLDataElement);
  readonly #activations = byId('memory-activations', HTMLDataElement);
  readonly #heap = byId('memory-heap', HTMLDataElement);
  readonly #fill = byId('kv-fill', HTMLElement);
  readonly #note = byId('kv-note', HTMLElement);
  readonly #painter = new FramePainter(() => this.#paint());
  #report: MemoryReport | undefined;

  /** A model has come. */
  showModel({ nLayer, nKvHead, nHead, nEmbd }: ModelConfig, report: MemoryReport): void {
    this.#showFormula(nLayer, nKvHead, nEmbd / nHead, report.kv.perToken);
    this.#note.textContent = 'Reserved when the model was loaded, for all of its positions.';
    this.update(report);
    this.#painter.now();
  }

  startRun(strategy: CacheStrategy): void {
    this.#note.textContent = noteFor(strategy);
  }

  /** At any rate; painted once a frame. */
  update(report: MemoryReport): void {
    this.#report = report;
    this.#painter.request();
  }

  /** The run is over, and its last report on the screen is the last there is. */
  endRun(): void {
    this.#note.textContent += ' Shown as the last token left it; it is free for the next run.';
    this.#painter.now();
  }

  /** The model is gone. */
  clear(): void {
    this.#report = undefined;
    this.#note.textContent = '';
    this.#showFormula(undefined, undefined, undefined, undefined);
    this.#painter.now();
  }

  #paint(): void {
    const report = this.#report;
    if (!report) {
      for (const element of this.#dataElements()) {
        element.value = '';
        element.textContent = dash;
      }
      this.#showBar(0, 1);
      return;
    }
    const { used, reserved, tokens, perToken } = report.kv;
    showData(this.#used, used, formatBytes(used));
    showData(this.#reserved, reserved, formatBytes(reserved));
    showData(this.#usedBytes, used, formatInteger(used));
    showData(this.#tokens, tokens, formatInteger(tokens));
    showData(this.#perToken, perToken, formatInteger(perToken));
    showData(this.#weights, report.weights, formatBytes(report.weights));
    showData(this.#activations, report.activations, formatBytes(report.activations));
    showData(this.#heap, report.heap, formatBytes(report.heap));
    this.#showBar(used, reserved);
  }

  #dataElements(): HTMLDataElement[] {
    const kv = [this.#used, this.#reserved, this.#usedBytes, this.#tokens, this.#perToken];
    return [...kv, this.#weights, this.#activations, this.#heap];
  }

  #showBar(used: number, reserved: number): void {
    this.#fill.style.width = `${(100 * used) / reserved}%`;
  }

  #showFormula(
    layers: number | undefined,
    kvHeads: number | undefined,
    headDim: number | undefined,
    result: number | undefined,
  ): void {
    const show = (id: string, value: number | undefined) => {
      byId(id, HTMLElement).textContent = value === undefined ? dash : formatInteger(value);
    };
    show('formula-layers', layers);
    show('formula-kv-heads', kvHeads);
    show('formula-head-dim', headDim);
    show('formula-result', result);
  }
}

function noteFor(strategy: CacheStrategy): string {
  switch (strategy) {
    case 'block':
      return 'Each token takes its place in what was reserved at the load.';
    case 'concat':
      return "Each token moves the cache to new memory, in addition to the engine's reserve.";
    case 'none':
      return 'Nothing is kept from one token to the next, so nothing is used.';
  }
}
