import type { ModelStore, StoredBytes } from '../source-types.js';

const cacheName = 'kvasm-models';

// Keys must be URLs; nothing is ever fetched from this one.
const base = 'https://kvasm.invalid/';

/** A cache of the Cache API; undefined where there is none, as on pages without HTTPS. */
export async function openCacheApi(): Promise<ModelStore | undefined> {
  try {
    return new CacheApiStore(await caches.open(cacheName));
  } catch {
    return undefined;
  }
}

class CacheApiStore implements ModelStore {
  readonly #cache: Cache;

  constructor(cache: Cache) {
    this.#cache = cache;
  }

  async get(name: string): Promise<Uint8Array | undefined> {
    const response = await this.#cache.match(base + name);
    return response && new Uint8Array(await response.arrayBuffer());
  }

  async put(name: string, bytes: Uint8Array<ArrayBuffer>): Promise<void> {
    const headers = { 'Content-Length': String(bytes.length) };
    await this.#cache.put(base + name, new Response(bytes, { headers }));
  }

  async delete(name: string): Promise<void> {
    await this.#cache.delete(base + name);
  }

  async list(): Promise<StoredBytes[]> {
    const found: StoredBytes[] = [];
    for (const request of await this.#cache.keys()) {
      const response = await this.#cache.match(request);
      const size = Number(response?.headers.get('content-length') ?? Number.NaN);
      if (response) found.push({ name: request.url.slice(base.length), size });
    }
    return found;
  }
}
