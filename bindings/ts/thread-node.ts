/** The script of a thread in Node. */

import { parentPort } from 'node:worker_threads';

import { serveThread } from './worker/thread-main.js';

const port = parentPort;
if (!port) throw new Error('thread-node.js must run in a worker thread');

serveThread({
  post: reply => port.postMessage(reply),
  onMessage(listener) {
    port.on('message', listener);
  },
});
