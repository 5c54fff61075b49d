import { modelCache } from '../node.js';
import type { CacheCommand } from './cache-usage.js';
import { formatBytes } from './progress-bar.js';
import { UsageError } from './usage-error.js';

/**
 * Lists or deletes what loads have kept.
 * @returns What to print.
 * @throws UsageError for a model of which nothing is kept
 */
export async function cache({ directory, remove }: CacheCommand): Promise<string> {
  const kept = modelCache({ directory });
  if (remove === undefined) {
    const lines = (await kept.list()).map(({ bytes, complete, model, file }) =>
      [formatBytes(bytes).padStart(9), complete ? 'whole  ' : 'partial', model, file].join('  '),
    );
    return [...lines, `${formatBytes(await kept.size()).padStart(9)}  in all`, ''].join('\n');
  }
  if (remove === 'all') return `${formatBytes(await kept.clear())} freed\n`;
  let freed = 0;
  for (const model of remove) {
    const bytes = await kept.delete(model);
    if (bytes === 0) throw new UsageError(`nothing is kept of ${JSON.stringify(model)}`);
    freed += bytes;
  }
  return `${formatBytes(freed)} freed\n`;
}
