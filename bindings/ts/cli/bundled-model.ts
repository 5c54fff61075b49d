import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

import { UsageError } from './usage-error.js';

/** The directory of the model that comes with the package. @throws UsageError when it does not. */
export function bundledModel(): string {
  const directory = fileURLToPath(new URL('../../models/fairy-tale/', import.meta.url));
  if (existsSync(join(directory, 'config.json'))) return directory;
  throw new UsageError(
    'no model comes with this copy of kvasm; ' +
      'pass --model with a directory, a URL or a Hugging Face id such as openai-community/gpt2',
  );
}
