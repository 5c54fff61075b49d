import type { EngineInfo, LoadProgress } from 'kvasm';
import { byId } from '../lib/dom.ts';
import { type Explanation, hideExplanation, showExplanation } from '../lib/explain.ts';
import { formatBytes, formatInteger } from '../lib/format.ts';

/** How far a model's load is, and how it ended. */
export class LoadView {
  readonly #report = byId('load-report', HTMLElement);
  readonly #bytes = byId('load-bytes', HTMLElement);
  readonly #percent = byId('load-percent', HTMLElement);
  readonly #bar = byId('load-progress', HTMLProgressElement);
  readonly #status = byId('model-status', HTMLElement);
  readonly #error = byId('model-error', HTMLElement);
  #weights: { readonly since: number; readonly before: number } | undefined;

  start(name: string): void {
    hideExplanation(this.#error);
    this.#weights = undefined;
    this.#report.hidden = false;
    this.#bytes.textContent = 'Starting';
    this.#showShare(0);
    this.#status.textContent = `Loading ${name}.`;
  }

  progress({ phase, loaded, overall }: LoadProgress): void {
    switch (phase) {
      case 'config':
      case 'tokenizer':
        this.#bytes.textContent = `Reading the ${phase}: ${formatBytes(loaded)}`;
        break;
      case 'weights':
        this.#bytes.textContent = this.#weightsLine(overall);
        break;
      case 'ready':
        this.#bytes.textContent = `Weights: ${formatBytes(loaded)}`;
        break;
    }
    // Of the whole: a bar that runs to its end once a file tells nothing.
    this.#showShare(overall.total === undefined ? undefined : share(overall.loaded, overall.total));
  }

  ready(name: string, { config, dtype, variant, threads }: EngineInfo): void {
    this.#report.hidden = true;
    const { nLayer, nHead, nKvHead, nEmbd, vocabSize, nPositions } = config;
    const heads =
      nKvHead === nHead ? count(nHead, 'head') : `${nHead} query and ${nKvHead} key/value heads`;
    const parts = [
      count(nLayer, 'layer'),
      heads,
      `width ${formatInteger(nEmbd)}`,
      `${formatInteger(vocabSize)} token ids`,
      `${formatInteger(nPositions)} positions`,
    ];
    this.#status.textContent = `Ready: ${name}. ${parts.join(', ')}. Weights: ${dtype}. Build: ${variant}, ${count(threads, 'thread')}.`;
  }

  aborted(): void {
    this.#report.hidden = true;
    this.#status.textContent = 'The load was aborted. No model is loaded.';
  }

  /** Nothing was tried, and what was loaded before still is. */
  refused(explanation: Explanation): void {
    showExplanation(this.#error, explanation);
  }

  failed(explanation: Explanation): void {
    this.#report.hidden = true;
    this.#status.textContent = 'No model is loaded.';
    showExplanation(this.#error, explanation);
  }

  unloaded(): void {
    hideExplanation(this.#error);
    this.#report.hidden = true;
    this.#status.textContent = 'The model is unloaded, and its memory free.';
  }

  /** Of all their files. */
  #weightsLine(overall: LoadProgress['overall']): string {
    // What was read before is the config and the tokenizer.
    this.#weights ??= { since: performance.now(), before: overall.loaded };
    const { since, before } = this.#weights;
    const seconds = (performance.now() - since) / 1000;
    const loaded = Math.max(overall.loaded - before, 0);
    const of = overall.total === undefined ? '' : ` of ${formatBytes(overall.total - before)}`;
    const rate = seconds > 0.5 ? `, ${formatBytes(loaded / seconds)}/s` : '';
    return `Weights: ${formatBytes(loaded)}${of}${rate}`;
  }

  /** @param share Of 1; undefined while nobody knows. */
  #showShare(share: number | undefined): void {
    if (share === undefined) {
      this.#bar.removeAttribute('value');
      this.#percent.textContent = '';
      return;
    }
    // Rounded down, so that 100 % is told of nothing less.
    const percent = Math.floor(share * 100);
    this.#bar.value = percent;
    this.#percent.textContent = `${percent} %`;
  }
}

function share(part: number, whole: number): number {
  return whole === 0 ? 1 : part / whole;
}

function count(value: number, noun: string): string {
  return `${formatInteger(value)} ${noun}${value === 1 ? '' : 's'}`;
}
