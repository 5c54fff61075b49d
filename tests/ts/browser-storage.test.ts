import { afterEach, describe, expect, it, vi } from 'vitest';

import { openStorageInBrowser } from '../../bindings/ts/storage/open-in-browser.js';

afterEach(() => vi.unstubAllGlobals());

/** The Cache API, as far as it is used. */
function stubCaches() {
  const entries = new Map<string, ArrayBuffer>();
  const cache = {
    match: async (url: string | { url: string }) => {
      const bytes = entries.get(typeof url === 'string' ? url : url.url);
      return bytes && new Response(bytes, { headers: { 'content-length': `${bytes.byteLength}` } });
    },
    put: async (url: string, response: Response) =>
      void entries.set(url, await response.arrayBuffer()),
    delete: async (url: string) => entries.delete(url),
    keys: async () => [...entries.keys()].map(url => ({ url })),
  };
  vi.stubGlobal('caches', { open: async () => cache });
  return entries;
}

const refused = async () => {
  throw new DOMException('not in private windows', 'SecurityError');
};

describe("storage 'auto' in a browser", () => {
  it.each([
    ['is missing', {}],
    ['is refused', { storage: { getDirectory: refused } }],
  ])('is the Cache API where the file system %s', async (_, navigator) => {
    vi.stubGlobal('navigator', navigator);
    const entries = stubCaches();
    const store = await openStorageInBrowser({ kind: 'auto' });
    await store?.put('a.1', new Uint8Array([1, 2, 3]));
    expect([...entries.keys()]).toEqual([expect.stringMatching(/^https:\/\/.*a\.1$/)]);
    expect(await store?.get('a.1')).toEqual(new Uint8Array([1, 2, 3]));
    expect(await store?.list()).toEqual([{ name: 'a.1', size: 3 }]);
    await store?.delete('a.1');
    expect(await store?.get('a.1')).toBeUndefined();
  });

  it('is nothing where both are missing, as on a page without HTTPS', async () => {
    vi.stubGlobal('navigator', {});
    expect(await openStorageInBrowser({ kind: 'auto' })).toBeUndefined();
    vi.stubGlobal('caches', { open: refused });
    expect(await openStorageInBrowser({ kind: 'auto' })).toBeUndefined();
    expect(await openStorageInBrowser({ kind: 'opfs' })).toBeUndefined();
  });
});
