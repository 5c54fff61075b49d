/** See `FileCacheOptions.lock`. Without the Web Locks API, as in Node, nobody is kept out. */
export function lockInBrowser(name: string): Promise<(() => void) | undefined> {
  const locks = globalThis.navigator?.locks;
  if (!locks) return Promise.resolve(() => {});
  return new Promise((resolve, reject) => {
    const held = locks.request(name, { ifAvailable: true }, lock => {
      if (!lock) {
        resolve(undefined);
        return undefined;
      }
      return new Promise<void>(release => resolve(release));
    });
    held.catch(reject);
  });
}
