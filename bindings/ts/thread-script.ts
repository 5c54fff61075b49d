/** Starts a thread's script in browsers, in a Worker of the engine's Worker. */

import { importForeign, isForeign } from './blob-worker.js';
import type { ThreadHandle } from './worker/thread-protocol.js';

// In a statement of its own, as in worker-script.ts.
const here = import.meta.url;

/** @throws what the browser throws when it refuses. */
export function startThread(): ThreadHandle {
  const worker = makeWorker();
  return {
    post: message => worker.postMessage(message),
    onMessage(listener) {
      worker.onmessage = event => listener(event.data);
    },
    onFailure(listener) {
      worker.onerror = event => {
        event.preventDefault();
        listener(event.message || 'its script could not be loaded');
      };
    },
    terminate: () => worker.terminate(),
  };
}

function makeWorker(): Worker {
  // In a bundle the script has a name that only the bundler knows, and the origin of the page.
  if (/\/thread-script\.js(\?|$)/.test(here) && isForeign(here)) {
    return importForeign(new URL('./thread.js', here).href);
  }
  // Bundlers look for this very expression.
  return new Worker(new URL('./thread.js', import.meta.url), { type: 'module' });
}
