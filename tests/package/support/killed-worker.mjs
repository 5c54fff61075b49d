// For `node --import`: SIGUSR2 ends the Workers of this process, as what runs out of memory would.

import { syncBuiltinESMExports } from 'node:module';
import threads from 'node:worker_threads';

threads.Worker = class extends threads.Worker {
  constructor(...args) {
    super(...args);
    process.on('SIGUSR2', () => this.terminate());
  }
};
syncBuiltinESMExports();
