import type { GenerateResult } from 'kvasm';
import { byId, showData } from '../lib/dom.ts';
import { formatInteger, formatMilliseconds, formatRate } from '../lib/format.ts';
import { FramePainter } from '../lib/frame.ts';

const dash = '–';

/** How fast a run is, and how it ended. While it runs by the page's clock, afterwards by the engine's. */
export class RunView {
  readonly #rate = byId('tokens-per-second', HTMLDataElement);
  readonly #firstToken = byId('first-token', HTMLDataElement);
  readonly #prefill = byId('prefill', HTMLDataElement);
  readonly #decode = byId('decode', HTMLDataElement);
  readonly #tokenCount = byId('token-count', HTMLDataElement);
  readonly #seed = byId('seed-used', HTMLDataElement);
  readonly #finish = byId('finish-reason', HTMLElement);
  readonly #painter = new FramePainter(() => this.#paint());
  #startedAt = 0;
  #firstAt = 0;
  #lastAt = 0;
  #count = 0;

  start(seed: number): void {
    this.#startedAt = performance.now();
    this.#count = 0;
    for (const element of [this.#rate, this.#firstToken, this.#prefill, this.#decode]) {
      element.value = '';
      element.textContent = dash;
    }
    showData(this.#seed, seed, String(seed));
    this.#finish.textContent = '';
    this.#painter.now();
  }

  token(): void {
    this.#lastAt = performance.now();
    if (this.#count === 0) this.#firstAt = this.#lastAt;
    this.#count++;
    this.#painter.request();
  }

  finished(result: GenerateResult, maxTokens: number): void {
    this.#painter.now();
    const { prefill, firstToken, decode, tokensPerSecond } = result.timings;
    showData(this.#prefill, prefill, formatMilliseconds(prefill));
    showData(this.#firstToken, firstToken, formatMilliseconds(firstToken));
    showData(this.#decode, decode, formatMilliseconds(decode));
    if (tokensPerSecond !== undefined) {
      showData(this.#rate, tokensPerSecond, formatRate(tokensPerSecond));
    }
    const { prompt, completion } = result.usage;
    showData(
      this.#tokenCount,
      completion,
      `${formatInteger(prompt)} + ${formatInteger(completion)}`,
    );
    this.#finish.textContent = [reasonFor(result, maxTokens), reuseOf(result)].join(' ').trim();
  }

  stopped(): void {
    this.#painter.now();
    this.#finish.textContent = 'Ended: you stopped it.';
  }

  failed(): void {
    this.#painter.now();
    this.#finish.textContent = 'Ended: by an error.';
  }

  #paint(): void {
    showData(this.#tokenCount, this.#count, `– + ${formatInteger(this.#count)}`);
    if (this.#count === 0) return;
    const first = this.#firstAt - this.#startedAt;
    showData(this.#firstToken, first, formatMilliseconds(first));
    const seconds = (this.#lastAt - this.#firstAt) / 1000;
    if (seconds <= 0) return;
    const rate = (this.#count - 1) / seconds;
    showData(this.#rate, rate, formatRate(rate));
  }
}

function reasonFor({ finishReason, usage }: GenerateResult, maxTokens: number): string {
  if (finishReason === 'stop') return 'Ended: the model ended its text.';
  if (usage.completion >= maxTokens) return 'Ended: max tokens reached.';
  return "Ended: the model's last position is taken.";
}

function reuseOf({ usage: { prompt, cached } }: GenerateResult): string {
  if (cached === 0) return '';
  return `${formatInteger(cached)} of the ${formatInteger(prompt)} tokens before it were in the cache already.`;
}
