/** The Worker's script in browsers. */

import type { ClientMessage, WorkerMessage } from './protocol.js';
import { holdUntilTheEnd, lockInBrowser } from './storage/lock.js';
import { openStorageInBrowser } from './storage/open-in-browser.js';
import { startThread } from './thread-script.js';
import { createBuild } from './worker/build.js';
import { sleep } from './worker/download/network.js';
import { Sha256 } from './worker/download/sha256.js';
import { fetchWasm } from './worker/fetch-wasm.js';
import { loadFailed, openPortable } from './worker/files.js';
import { serve } from './worker/host.js';

// TypeScript's types of a page and of a Worker exclude each other; this is the part that is needed of the latter's.
interface WorkerScope {
  postMessage(message: unknown, transfer: ArrayBuffer[]): void;
  onmessage: ((event: MessageEvent<ClientMessage>) => void) | null;
}
const scope = globalThis as unknown as WorkerScope;

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
    createBuild: options =>
      createBuild(options, {
        compile: fetchWasm,
        startThread,
        processors: navigator.hardwareConcurrency || undefined,
      }),
    openFile: openPortable,
    listDirectory: path => Promise.reject(loadFailed(path, 'directories can be read in Node only')),
    openStorage: openStorageInBrowser,
    lock: lockInBrowser,
    makeHash: () => new Sha256(),
    network: { sleep, random: Math.random, seesRedirects: false },
  },
);
