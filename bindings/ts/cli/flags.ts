import { type ParseArgsConfig, parseArgs } from 'node:util';

import { UsageError } from './usage-error.js';

type Flags = NonNullable<ParseArgsConfig['options']>;
type Parsed<Options extends Flags> = ReturnType<
  typeof parseArgs<{ args: string[]; allowPositionals: true; options: Options }>
>;

/** @throws UsageError for a flag that is not among the options, or lacks its value. */
export function parseFlags<const Options extends Flags>(
  args: readonly string[],
  options: Options,
): Parsed<Options> {
  try {
    return parseArgs({ args: [...args], allowPositionals: true, options });
  } catch (cause) {
    throw new UsageError(cause instanceof Error ? cause.message : String(cause), { cause });
  }
}
