// The package's Worker in Node, with threads that die. How is the query: `in-a-piece` reports what a trap in the midst of
// the work reports, `between` ends a thread that waits.

import { syncBuiltinESMExports } from 'node:module';
import workerThreads from 'node:worker_threads';

const { Worker } = workerThreads;
const how = new URL(import.meta.url).searchParams.get('how');
const script = new URL(`./dying-thread.mjs?how=${how}`, import.meta.url);

workerThreads.Worker = class extends Worker {
  constructor(_url, options) {
    super(script, options);
  }
};
syncBuiltinESMExports();
await import('../../../dist/worker-node.js');
