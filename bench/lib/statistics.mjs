export function median(values) {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

/** { median, min, max } */
export const summarise = values => ({
  median: median(values),
  min: Math.min(...values),
  max: Math.max(...values),
});

/** Of a / b, pair by pair: samples of one round share what else the machine was doing. */
export const summariseRatios = (a, b) => summarise(a.map((value, i) => value / b[i]));

/** Three significant digits, and no exponent. */
export function digits(value) {
  if (!Number.isFinite(value)) return '?';
  const whole = Math.max(0, 2 - Math.floor(Math.log10(Math.abs(value) || 1)));
  return value.toFixed(Math.min(whole, 6));
}

/** The median, with the range of the samples when there are several. */
export const withRange = ({ median: middle, min, max }) =>
  min === max ? digits(middle) : `${digits(middle)} (${digits(min)} to ${digits(max)})`;
