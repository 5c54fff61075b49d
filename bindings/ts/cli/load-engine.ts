import { Engine } from '../node.js';
import type { LoadOptions } from '../types.js';
import { hubOptions } from './download-flags.js';
import { ProgressBar } from './progress-bar.js';

/**
 * Loads a model, with a bar on standard error meanwhile.
 * @throws KvasmError; the signal's reason when it aborts the load
 */
export async function loadEngine(
  model: string,
  options: LoadOptions,
  signal: AbortSignal,
): Promise<Engine> {
  const bar = new ProgressBar(process.stderr);
  try {
    return await Engine.load(model, {
      ...hubOptions(process.env),
      ...options,
      signal,
      onProgress: bar.update,
    });
  } finally {
    bar.clear();
  }
}
