// What the benches take from the command line.

import { parseArgs } from 'node:util';

/** The number that an option's text is, or an Error that names the option. */
export function positiveInteger(name, text) {
  const number = Number(text);
  if (Number.isSafeInteger(number) && number > 0) return number;
  throw new Error(`--${name}: '${text}' is not a positive integer`);
}

/**
 * Each of the options by its name: a positive integer where the default is a number, else text.
 *
 * @param {Record<string, number | string | undefined>} defaults
 * @returns undefined where `--help` is asked for
 */
export function readOptions(defaults, args = process.argv.slice(2)) {
  const names = Object.keys(defaults);
  const texts = names.map(name => [name, { type: 'string' }]);
  const options = { ...Object.fromEntries(texts), help: { type: 'boolean' } };
  const { values } = parseArgs({ args, options });
  if (values.help) return undefined;
  const read = name => {
    const text = values[name];
    if (text === undefined) return defaults[name];
    return typeof defaults[name] === 'number' ? positiveInteger(name, text) : text;
  };
  return Object.fromEntries(names.map(name => [name, read(name)]));
}
