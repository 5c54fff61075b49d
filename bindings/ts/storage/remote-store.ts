import { remoteObject } from '../remote.js';
import type { ModelStore } from '../source-types.js';

/** A store as it is served to a Worker: what it gives is copied, as the copy is given away. */
export function servedStore(store: ModelStore): ModelStore {
  return {
    async get(name) {
      const bytes = await store.get(name);
      return bytes && new Uint8Array(bytes);
    },
    async put(name, bytes) {
      await store.put(name, bytes);
    },
    async delete(name) {
      await store.delete(name);
    },
    list: async () => Array.from(await store.list(), ({ name, size }) => ({ name, size })),
  };
}

export function storeAt(port: MessagePort): ModelStore {
  return remoteObject<ModelStore>(port, ['get', 'put', 'delete', 'list']);
}
