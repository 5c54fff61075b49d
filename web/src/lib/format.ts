/** Numbers as people read them. The page is in English, whatever the browser's language is. */

const integers = new Intl.NumberFormat('en');
const units = ['KiB', 'MiB', 'GiB'];

export function formatInteger(value: number): string {
  return integers.format(value);
}

/** Three digits or more, in binary units, as memory comes in. */
export function formatBytes(bytes: number): string {
  let value = bytes;
  let unit = 'B';
  for (const larger of units) {
    if (value < 1024) break;
    value /= 1024;
    unit = larger;
  }
  return `${unit === 'B' ? integers.format(value) : value.toFixed(fractionDigits(value))} ${unit}`;
}

export function formatMilliseconds(milliseconds: number): string {
  if (milliseconds >= 10_000) return `${(milliseconds / 1000).toFixed(1)} s`;
  return `${milliseconds.toFixed(milliseconds < 100 ? 1 : 0)} ms`;
}

export function formatRate(perSecond: number): string {
  return perSecond >= 100 ? integers.format(Math.round(perSecond)) : perSecond.toFixed(1);
}

function fractionDigits(value: number): number {
  if (value >= 100) return 0;
  return value >= 10 ? 1 : 2;
}
