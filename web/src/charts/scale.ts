/** Round numbers from 0 to at least `most`, about `count` steps apart. */
export function ticks(most: number, count: number): number[] {
  if (!(most > 0 && Number.isFinite(most))) return [0, 1];
  const rough = most / count;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map(factor => factor * power).find(size => size >= rough) ?? rough;
  const steps = Math.max(Math.ceil(most / step - 1e-9), 1);
  return Array.from({ length: steps + 1 }, (_, i) => Number((i * step).toPrecision(12)));
}

/** Middle of an odd number of values, mean of the two middle ones of an even number; NaN of none. */
export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const half = sorted.length / 2;
  const [low, high] = [sorted[Math.ceil(half) - 1], sorted[Math.floor(half)]];
  return low === undefined || high === undefined ? Number.NaN : (low + high) / 2;
}

/** Each value smoothed over the `width` values up to it, so that single hiccups do not hide the trend. */
export function smooth(values: readonly number[], width: number): number[] {
  return values.map((_, i) => median(values.slice(Math.max(0, i - width + 1), i + 1)));
}
