/** The Worker that comes inside a bundle, in one script with its WebAssembly; scripts/lib/embed-worker.mjs makes it. */

import type { WasmModuleFactory } from '../wasm-module.js';
import { fetchWasm } from './fetch-wasm.js';
import { compileFailed } from './instantiate.js';
import { serveInBrowser } from './serve-in-browser.js';

/**
 * Makes this Worker an engine's, with one build.
 * @param factory The glue of the build `simd`.
 * @param wasm Its module, compressed by gzip, in Base64.
 */
export function serveEmbedded(factory: WasmModuleFactory, wasm: string): void {
  const reason =
    "the worker runs from within the page's bundle, which has one build only (`workerUrl` names a copy of all)";
  serveInBrowser({
    async fetchBuild(_name, wasmUrl) {
      const compiled = await (wasmUrl === undefined ? decompress(wasm) : fetchWasm(wasmUrl));
      return { compiled, factory };
    },
    startThread() {
      throw new Error(reason);
    },
    onlyPlainSimd: reason,
  });
}

async function decompress(base64: string): Promise<WebAssembly.Module> {
  try {
    const bytes = Uint8Array.from(atob(base64), letter => letter.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('gzip'));
    return await WebAssembly.compile(await new Response(stream).arrayBuffer());
  } catch (cause) {
    throw compileFailed("The bundle's WebAssembly", cause);
  }
}
