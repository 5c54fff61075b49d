import { BaseEngine, loadWorker } from './engine.js';
import type { LoadedEngine } from './generation.js';
import { nodePlatform } from './platform-node.js';
import type { ModelCache } from './storage/model-cache.js';
import { openStorageInNode } from './storage/open-in-node.js';
import { openModelCache } from './storage/open-model-cache.js';
import type { LoadOptions, ModelSource, StorageOption } from './types.js';

export * from './exports.js';

/** A model, ready to generate, in a Worker of its own. */
export class Engine extends BaseEngine {
  private constructor(loaded: LoadedEngine) {
    super(loaded);
  }

  /**
   * Fetches a GPT-2 checkpoint as it lies on the Hugging Face hub, and makes an engine of it.
   * @throws InvalidArgumentError for a source or an option; ModelError when the files cannot be had or used;
   *   GenerationError `out-of-memory`; EngineClosedError `crashed`; the reason of `options.signal`. Also what
   *   `options.onProgress` throws.
   */
  static async load(source: ModelSource, options: LoadOptions = {}): Promise<Engine> {
    return new Engine(await loadWorker(nodePlatform, source, options));
  }
}

/**
 * What loads have kept in a storage, to be listed and deleted.
 * @param storage As in `LoadOptions.storage`. Default `auto`, which is none in Node.
 * @throws InvalidArgumentError
 */
export function modelCache(storage: StorageOption = 'auto'): ModelCache {
  return openModelCache(storage, nodePlatform, openStorageInNode);
}
