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

/** Takes a lock that is given back when this Worker ends, however that comes about. Does nothing without the API. */
export function holdUntilTheEnd(holding: (lock: string) => void): void {
  const locks = globalThis.navigator?.locks;
  if (!locks) return;
  const name = `kvasm worker ${crypto.randomUUID()}`;
  const held = locks.request(name, () => {
    holding(name);
    return new Promise(() => {});
  });
  // Refused where storage is: then nobody is told.
  held.catch(() => {});
}
