import { checkStorage, plainStorage } from '../download-options.js';
import type { Platform } from '../platform.js';
import type { StorageLocation } from '../protocol.js';
import type { ModelStore, StorageOption } from '../source-types.js';
import { ModelCache } from './model-cache.js';

/** @throws InvalidArgumentError */
export function openModelCache(
  storage: StorageOption,
  platform: Platform,
  open: (location: StorageLocation) => Promise<ModelStore | undefined>,
): ModelCache {
  checkStorage(storage);
  const location = plainStorage(storage, path => platform.resolveDirectory(path));
  return new ModelCache(() =>
    location === undefined ? Promise.resolve(storage as ModelStore) : open(location),
  );
}
