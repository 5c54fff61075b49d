import type { EngineInfo, MemoryReport } from 'kvasm';
import { byId, make, showData } from '../lib/dom.ts';
import { formatBytes, formatInteger } from '../lib/format.ts';
import { type Factor, kvFactors } from './kv-formula.ts';
import type { KvTokens } from './kv-tokens.ts';

const dash = '–';

/** The memory of the cache in numbers. */
export class MemoryView {
  readonly #used = byId('kv-used', HTMLDataElement);
  readonly #reserved = byId('kv-reserved', HTMLDataElement);
  readonly #shared = byId('kv-shared', HTMLDataElement);
  readonly #cached = byId('kv-cached', HTMLDataElement);
  readonly #usedBytes = byId('kv-used-bytes', HTMLDataElement);
  readonly #tokens = byId('kv-tokens', HTMLDataElement);
  readonly #perToken = byId('kv-per-token', HTMLDataElement);
  readonly #weights = byId('memory-weights', HTMLDataElement);
  readonly #heap = byId('memory-heap', HTMLDataElement);
  readonly #usedBar = byId('kv-fill', HTMLElement);
  readonly #cachedBar = byId('kv-cached-fill', HTMLElement);
  readonly #formula = byId('kv-formula', HTMLElement);
  #report: MemoryReport | undefined;

  /** A model has come. */
  showModel({ config, kvDtype }: EngineInfo, report: MemoryReport): void {
    this.#showFormula(kvFactors(config, kvDtype), formatInteger(report.kv.perToken));
    this.show(report);
  }

  show(report: MemoryReport): void {
    this.#report = report;
    this.#show(report);
  }

  /** Of the model that the last report was about, at another moment. */
  showMoment({ used, shared, cached }: KvTokens): void {
    if (!this.#report) return;
    const { perToken, reserved } = this.#report.kv;
    const kv = {
      perToken,
      reserved,
      tokens: used,
      used: used * perToken,
      shared: shared * perToken,
      cached: cached * perToken,
    };
    this.#show({ ...this.#report, kv });
  }

  #show({ kv, weights, heap }: MemoryReport): void {
    const { used, reserved, shared, cached, tokens, perToken } = kv;
    showData(this.#used, used, formatBytes(used));
    showData(this.#reserved, reserved, formatBytes(reserved));
    showData(this.#shared, shared, formatBytes(shared));
    showData(this.#cached, cached, formatBytes(cached));
    showData(this.#usedBytes, used, formatInteger(used));
    showData(this.#tokens, tokens, formatInteger(tokens));
    showData(this.#perToken, perToken, formatInteger(perToken));
    showData(this.#weights, weights, formatBytes(weights));
    showData(this.#heap, heap, formatBytes(heap));
    // Shared bytes are there once.
    this.#usedBar.style.width = `${(100 * (used - shared)) / reserved}%`;
    this.#cachedBar.style.width = `${(100 * cached) / reserved}%`;
  }

  /** The model is gone. */
  clear(): void {
    this.#report = undefined;
    const numbers = [this.#used, this.#reserved, this.#shared, this.#cached, this.#usedBytes];
    for (const element of [...numbers, this.#tokens, this.#perToken, this.#weights, this.#heap]) {
      element.value = '';
      element.textContent = dash;
    }
    this.#usedBar.style.width = this.#cachedBar.style.width = '0';
    const meanings = ['keys, values', 'layers', 'KV heads', 'head size', 'bytes'];
    this.#showFormula(
      meanings.map(meaning => ({ value: meaning === 'keys, values' ? '2' : dash, meaning })),
      dash,
    );
  }

  #showFormula(factors: readonly Factor[], result: string): void {
    const terms = factors.flatMap(({ value, meaning }, index) => [
      ...(index > 0 ? [make('span', {}, '×')] : []),
      term(value, meaning),
    ]);
    const total = term(result, 'bytes a token');
    total.firstElementChild?.setAttribute('id', 'formula-result');
    this.#formula.replaceChildren(...terms, make('span', {}, '='), total);
  }
}

function term(value: string, meaning: string): HTMLElement {
  return make('span', { class: 'term' }, make('b', {}, value), ' ', make('i', {}, meaning));
}
