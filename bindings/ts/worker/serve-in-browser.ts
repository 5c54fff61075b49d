/** What the Worker's scripts in browsers have in common. */

import type { ClientMessage, WorkerMessage } from '../protocol.js';
import { holdUntilTheEnd, lockInBrowser } from '../storage/lock.js';
import { openStorageInBrowser } from '../storage/open-in-browser.js';
import { type BuildPlatform, createBuild } from './build.js';
import { sleep } from './download/network.js';
import { Sha256 } from './download/sha256.js';
import { loadFailed, openPortable } from './files.js';
import { serve } from './host.js';

// TypeScript's types of a page and of a Worker exclude each other; this is the part that is needed of the latter's.
interface WorkerScope {
  postMessage(message: unknown, transfer: ArrayBuffer[]): void;
  onmessage: ((event: MessageEvent<ClientMessage>) => void) | null;
}

/** Makes this Worker an engine's. Called once, when the script starts. */
export function serveInBrowser(platform: Omit<BuildPlatform, 'processors'>): void {
  const scope = globalThis as unknown as WorkerScope;
  const post = (message: WorkerMessage, transfer: ArrayBuffer[] = []) =>
    scope.postMessage(message, transfer);
  holdUntilTheEnd(lock => post({ type: 'alive', lock }));
  const processors = navigator.hardwareConcurrency || undefined;
  serve(
    {
      post,
      onMessage(listener) {
        scope.onmessage = event => listener(event.data);
      },
    },
    {
      createBuild: options => createBuild(options, { ...platform, processors }),
      openFile: openPortable,
      listDirectory: path =>
        Promise.reject(loadFailed(path, 'directories can be read in Node only')),
      openStorage: openStorageInBrowser,
      lock: lockInBrowser,
      makeHash: () => new Sha256(),
      network: { sleep, random: Math.random, seesRedirects: false },
    },
  );
  post({ type: 'ready' });
}
