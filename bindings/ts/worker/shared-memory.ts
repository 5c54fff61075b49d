const pageBytes = 64 * 1024;

/** What bindings/CMakeLists.txt gives every build as its INITIAL_MEMORY. */
const initialPages = (16 << 20) / pageBytes;

/**
 * Some systems, such as iOS, refuse a shared memory by what it might grow to. A smaller one may hold a small model, and
 * one that turns out too small is a GenerationError `out-of-memory` of the load.
 */
const maximumMegabytes = [4096, 2048, 1024, 512];

/** The memory of a build with threads, with the largest maximum that is granted, or undefined for none. */
export function createSharedMemory(): WebAssembly.Memory | undefined {
  for (const megabytes of maximumMegabytes) {
    const maximum = megabytes * ((1 << 20) / pageBytes);
    try {
      return new WebAssembly.Memory({ initial: initialPages, maximum, shared: true });
    } catch (error) {
      if (!(error instanceof RangeError)) throw error;
    }
  }
  return undefined;
}
