import type { StorageLocation } from '../protocol.js';
import type { ModelStore } from '../source-types.js';
import { openCacheApi } from './cache-api.js';
import { openOpfs } from './opfs.js';
import { storeAt } from './remote-store.js';

/** The store of a `StorageOption` in a browser, on a page and in a Worker; undefined for none. */
export async function openStorageInBrowser(
  location: StorageLocation,
): Promise<ModelStore | undefined> {
  switch (location.kind) {
    case 'auto':
      return (await openOpfs()) ?? (await openCacheApi());
    case 'opfs':
      return openOpfs();
    case 'cache-api':
      return openCacheApi();
    case 'store':
      return storeAt(location.port);
    case 'off':
    case 'directory':
      return undefined;
  }
}
