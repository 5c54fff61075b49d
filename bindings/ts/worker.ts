/** The Worker's script in browsers. */

import type { ClientMessage, WorkerMessage } from './protocol.js';
import { holdUntilTheEnd, lockInBrowser } from './storage/lock.js';
import { openStorageInBrowser } from './storage/open-in-browser.js';
import createModule from './wasm/kvasm-simd.js';
import { sleep } from './worker/download/network.js';
import { Sha256 } from './worker/download/sha256.js';
import { fetchWasm } from './worker/fetch-wasm.js';
import { loadFailed, openPortable } from './worker/files.js';
import { serve } from './worker/host.js';
import { instantiate } from './worker/instantiate.js';

// TypeScript's types of a page and of a Worker exclude each other; this is the part that is needed of the latter's.
interface WorkerScope {
  postMessage(message: unknown, transfer: ArrayBuffer[]): void;
  onmessage: ((event: MessageEvent<ClientMessage>) => void) | null;
}
const scope = globalThis as unknown as WorkerScope;

// Bundlers look for this very expression.
const besideThisFile = new URL('./wasm/kvasm-simd.wasm', import.meta.url);

const post = (message: WorkerMessage, transfer: ArrayBuffer[] = []) =>
  scope.postMessage(message, transfer);

holdUntilTheEnd(lock => post({ type: 'alive', lock }));

serve(
  {
    post,
    onMessage(listener) {
      scope.onmessage = event => listener(event.data);
    },
  },
  {
    variant: 'simd',
    createModule: async wasmUrl =>
      instantiate(createModule, await fetchWasm(wasmUrl ?? besideThisFile.href)),
    openFile: openPortable,
    listDirectory: path => Promise.reject(loadFailed(path, 'directories can be read in Node only')),
    openStorage: openStorageInBrowser,
    lock: lockInBrowser,
    makeHash: () => new Sha256(),
    network: { sleep, random: Math.random, seesRedirects: false },
  },
);
