/** The command line is wrong. */
export class UsageError extends Error {}

/** @throws UsageError */
export function parseNumber(flag: string, text: string): number {
  const number = text.trim() === '' ? Number.NaN : Number(text);
  if (Number.isNaN(number)) {
    throw new UsageError(`--${flag} must be a number, not ${JSON.stringify(text)}`);
  }
  return number;
}
