import { parseFlags } from './flags.js';
import { UsageError } from './usage-error.js';

export const cacheHelpText = `kvasm cache: what --storage of other commands has kept

Usage:
  kvasm cache ls --storage DIR           lists the files: bytes, state, model, name
  kvasm cache rm --storage DIR MODEL...  deletes the files of these models, as ls tells them
  kvasm cache rm --storage DIR --all     deletes all files
`;

export interface CacheCommand {
  readonly directory: string;
  /** What to do away with; undefined to list. */
  readonly remove: readonly string[] | 'all' | undefined;
}

const flags = {
  storage: { type: 'string' },
  all: { type: 'boolean' },
  help: { type: 'boolean', short: 'h' },
} as const;

/** @throws UsageError */
export function parseCache(args: readonly string[]): CacheCommand | 'help' {
  const { values, positionals } = parseFlags(args, flags);
  if (values.help) return 'help';
  const [name, ...models] = positionals;
  if (name !== 'ls' && name !== 'rm') throw new UsageError('cache has the commands ls and rm');
  const { storage: directory, all = false } = values;
  if (directory === undefined) throw new UsageError('--storage is missing');
  if (name === 'ls') {
    if (models.length > 0 || all) throw new UsageError('cache ls lists everything');
    return { directory, remove: undefined };
  }
  if (all === models.length > 0) throw new UsageError('cache rm takes models, or --all');
  return { directory, remove: all ? 'all' : models };
}
