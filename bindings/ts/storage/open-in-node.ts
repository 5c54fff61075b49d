import type { StorageLocation } from '../protocol.js';
import type { ModelStore } from '../source-types.js';
import { openDirectory } from './directory.js';
import { storeAt } from './remote-store.js';

/** The store of a `StorageOption` in Node, where nothing is kept unless it is asked for. */
export async function openStorageInNode(
  location: StorageLocation,
): Promise<ModelStore | undefined> {
  switch (location.kind) {
    case 'directory':
      return openDirectory(location.path);
    case 'store':
      return storeAt(location.port);
    default:
      return undefined;
  }
}
