/** Starts a thread's script in Node. */

import { Worker } from 'node:worker_threads';

import { describeThrown } from './protocol.js';
import type { ThreadHandle } from './worker/thread-protocol.js';

export function startThread(): ThreadHandle {
  // The flags that the process was started with, such as `--input-type`, are about its own script.
  const worker = new Worker(new URL('./thread-node.js', import.meta.url), { execArgv: [] });
  // The engine's Worker decides what keeps the process alive.
  worker.unref();
  return {
    post: message => worker.postMessage(message),
    onMessage(listener) {
      worker.removeAllListeners('message').on('message', listener);
      worker.unref();
    },
    onFailure(listener) {
      worker.removeAllListeners('error').removeAllListeners('exit');
      worker.on('error', error => listener(describeThrown(error)));
      worker.on('exit', code => listener(`it exited with code ${code}`));
    },
    terminate() {
      worker.terminate();
    },
  };
}
