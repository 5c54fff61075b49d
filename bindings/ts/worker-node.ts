/** The Worker's script in Node. */

import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { availableParallelism } from 'node:os';
import { fileURLToPath } from 'node:url';
import { parentPort } from 'node:worker_threads';

import { describeThrown } from './protocol.js';
import { openStorageInNode } from './storage/open-in-node.js';
import { startThread } from './thread-script-node.js';
import { createBuild } from './worker/build.js';
import { sleep } from './worker/download/network.js';
import type { Hash } from './worker/download/sha256.js';
import { fetchBuild } from './worker/fetch-build.js';
import { fetchWasm } from './worker/fetch-wasm.js';
import { loadFailed } from './worker/files.js';
import { listDirectory, openInNode } from './worker/files-node.js';
import { serve } from './worker/host.js';
import { compileFailed } from './worker/instantiate.js';

const port = parentPort;
if (!port) throw new Error('worker-node.js must run in a worker thread');

serve(
  {
    post: (message, transfer) => port.postMessage(message, transfer),
    onMessage(listener) {
      port.on('message', listener);
    },
  },
  {
    createBuild: options =>
      createBuild(options, {
        fetchBuild: fetchBuild(compileFrom),
        startThread,
        processors: availableParallelism(),
      }),
    openFile: openInNode,
    listDirectory,
    openStorage: openStorageInNode,
    // Its stores replace files at once, so that writers need not know of each other.
    lock: async () => () => {},
    makeHash: hashInNode,
    network: { sleep, random: Math.random, seesRedirects: true },
  },
);

async function compileFrom(wasmUrl: string): Promise<WebAssembly.Module> {
  if (/^https?:/i.test(wasmUrl)) return fetchWasm(wasmUrl);
  const path = fileURLToPath(wasmUrl);
  let bytes: Uint8Array<ArrayBuffer>;
  try {
    bytes = await readFile(path);
  } catch (cause) {
    throw loadFailed(path, `cannot be read (${describeThrown(cause)})`, cause);
  }
  try {
    return await WebAssembly.compile(bytes);
  } catch (cause) {
    throw compileFailed(path, cause);
  }
}

/** Many times as fast as one in JavaScript. */
function hashInNode(): Hash {
  const hash = createHash('sha256');
  return { update: bytes => void hash.update(bytes), digest: () => hash.digest('hex') };
}
