import { closestName, describe } from './describe.js';
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

/** @throws InvalidArgumentError */
export function checkNames(method: string, options: unknown, names: readonly string[]): void {
  if (typeof options !== 'object' || options === null || Array.isArray(options)) {
    throw new InvalidArgumentError(
      `The options of ${method} must be an object, not ${describe(options)}.`,
    );
  }
  for (const name of Object.keys(options)) {
    if (!names.includes(name)) {
      throw new InvalidArgumentError(
        `${method} has no option ${describe(name)}; the closest is "${closestName(name, names)}", ` +
          `of: ${names.join(', ')}.`,
      );
    }
  }
}

/** @throws InvalidArgumentError */
export function checkBoolean(name: string, value: unknown): void {
  if (typeof value !== 'boolean') refuse(name, value, 'true or false');
}

/** @throws InvalidArgumentError */
export function checkName(option: string, value: unknown, names: object): void {
  if (typeof value === 'string' && Object.hasOwn(names, value)) return;
  const quoted = Object.keys(names).map(name => `'${name}'`);
  refuse(option, value, quoted.join(' or '));
}

/** @throws InvalidArgumentError */
export function checkSignal(signal: unknown): void {
  // By shape, as a signal from another realm is no instance of this realm's class.
  const usable =
    typeof signal === 'object' &&
    signal !== null &&
    'aborted' in signal &&
    'addEventListener' in signal;
  if (signal !== undefined && !usable) refuse('signal', signal, 'an AbortSignal');
}
