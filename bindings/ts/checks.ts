import { describe } from './describe.js';
import { InvalidArgumentError } from './errors.js';

/** @throws InvalidArgumentError */
export function checkInteger(
  name: string,
  value: unknown,
  least: number,
  most: number,
  mostText = String(most),
): void {
  if (!(Number.isSafeInteger(value) && Number(value) >= least && Number(value) <= most)) {
    const range =
      most === Number.MAX_SAFE_INTEGER && mostText === String(most)
        ? `of at least ${least}`
        : `from ${least} to ${mostText}`;
    refuse(name, value, `an integer ${range}`);
  }
}

/** @throws InvalidArgumentError */
export function refuse(name: string, value: unknown, wanted: string): never {
  throw new InvalidArgumentError(`${name} must be ${wanted}, not ${describe(value)}.`);
}
