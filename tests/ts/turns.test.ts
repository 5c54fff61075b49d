import { expect, it } from 'vitest';

import { Turns } from '../../bindings/ts/worker/turns.js';

it('lets a message of another port through between two turns', async () => {
  const turns = new Turns();
  const { port1, port2 } = new MessageChannel();
  let arrived = false;
  port1.onmessage = () => {
    arrived = true;
  };
  // The first turns are where the message may still be under way.
  for (let round = 0; round < 20; round++) {
    arrived = false;
    for (let turn = 0; turn < 50; turn++) await turns.next();
    port2.postMessage(undefined);
    let needed = 0;
    while (!arrived) {
      await turns.next();
      needed++;
    }
    expect(needed).toBeLessThanOrEqual(3);
  }
  port1.close();
  turns.close();
});
