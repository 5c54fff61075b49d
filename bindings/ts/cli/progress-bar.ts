import type { LoadProgress } from '../types.js';

const width = 30;

/** Draws the progress of a load on one line of a terminal; on anything else it draws nothing. */
export class ProgressBar {
  readonly #out: NodeJS.WriteStream;
  #drawn = false;

  constructor(out: NodeJS.WriteStream) {
    this.#out = out;
  }

  readonly update = ({ phase, loaded, total }: LoadProgress): void => {
    if (!this.#out.isTTY || phase === 'ready') return;
    this.#drawn = true;
    this.#out.write(`\r\x1b[K${phase.padEnd(9)} ${progressLine(loaded, total)}`);
  };

  /** Takes the line away. */
  clear(): void {
    if (this.#drawn) this.#out.write('\r\x1b[K');
    this.#drawn = false;
  }
}

export function progressLine(loaded: number, total: number | undefined): string {
  if (total === undefined) return formatBytes(loaded);
  const share = total > 0 ? Math.min(loaded / total, 1) : 1;
  const filled = Math.floor(share * width);
  const bar = '#'.repeat(filled) + '.'.repeat(width - filled);
  const percent = `${Math.floor(share * 100)}%`.padStart(4);
  return `[${bar}]${percent} of ${formatBytes(total)}`;
}

/** Decimal units, as files are sold in. */
export function formatBytes(bytes: number): string {
  if (bytes < 1000) return `${bytes} B`;
  const units = ['kB', 'MB', 'GB'];
  let value = bytes / 1000;
  let unit = 0;
  while (value >= 999.95 && unit < units.length - 1) {
    value /= 1000;
    unit++;
  }
  return `${value.toFixed(1)} ${units[unit]}`;
}
