import { expect, it, vi } from 'vitest';

import { BundledWorker } from '../../bindings/ts/bundled-worker.js';
import type { WorkerHandle } from '../../bindings/ts/platform.js';
import type { ClientMessage, WorkerMessage } from '../../bindings/ts/protocol.js';

class FakeWorker implements WorkerHandle {
  posted: ClientMessage[] = [];
  ended = false;
  say: (message: WorkerMessage) => void = () => {};
  fail: (reason: string) => void = () => {};

  post(message: ClientMessage): void {
    this.posted.push(message);
  }
  onMessage(listener: (message: WorkerMessage) => void): void {
    this.say = listener;
  }
  onFailure(listener: (reason: string) => void): void {
    this.fail = listener;
  }
  setBusy(): void {}
  async terminate(): Promise<void> {
    this.ended = true;
  }
}

function make(startEmitted?: () => WorkerHandle) {
  const emitted = new FakeWorker();
  const embedded = new FakeWorker();
  const startEmbedded = vi.fn(async () => embedded);
  const worker = new BundledWorker(startEmitted ?? (() => emitted), startEmbedded);
  const heard: WorkerMessage[] = [];
  const failures: string[] = [];
  worker.onMessage(message => heard.push(message));
  worker.onFailure(reason => failures.push(reason));
  return { worker, emitted, embedded, startEmbedded, heard, failures };
}

const cancel: ClientMessage = { type: 'cancel', id: 1 };

it('the copy in the bundle is not asked for while the emitted worker does', async () => {
  const { worker, emitted, startEmbedded, heard, failures } = make();
  emitted.say({ type: 'ready' });
  await worker.settled;
  worker.post(cancel, []);
  emitted.fail('it was ended');
  expect(emitted.posted).toEqual([cancel]);
  expect(heard).toEqual([{ type: 'ready' }]);
  expect(failures).toEqual(['it was ended']);
  expect(startEmbedded).not.toHaveBeenCalled();
});

it.each(['fails', 'cannot be made'])(
  'the copy takes the place of an emitted worker that %s',
  async how => {
    const refuse = () => {
      throw new TypeError('Invalid URL');
    };
    const made = make(how === 'fails' ? undefined : refuse);
    const { worker, emitted, embedded, heard, failures } = made;
    emitted.fail('no script');
    await vi.waitFor(() => expect(made.startEmbedded).toHaveBeenCalledOnce());
    await Promise.resolve();
    embedded.say({ type: 'ready' });
    await worker.settled;
    worker.post(cancel, []);
    expect(embedded.posted).toEqual([cancel]);
    expect(emitted.posted).toEqual([]);
    expect(emitted.ended).toBe(how === 'fails');
    expect(heard).toEqual([{ type: 'ready' }]);
    expect(failures).toEqual([]);
  },
);

it('when neither starts, both reasons are told, and what to do', async () => {
  const { worker, emitted, embedded, failures, startEmbedded } = make();
  emitted.fail('no script');
  await vi.waitFor(() => expect(startEmbedded).toHaveBeenCalledOnce());
  await Promise.resolve();
  embedded.fail('no Blob');
  await worker.settled;
  expect(failures).toEqual([expect.stringMatching(/^no script; .*no Blob.*workerUrl$/)]);
});

it('when it is ended meanwhile, no worker is left', async () => {
  const { worker, emitted, embedded } = make();
  emitted.fail('no script');
  await worker.terminate();
  await worker.settled;
  await vi.waitFor(() => expect(embedded.ended).toBe(true));
  expect(emitted.ended).toBe(true);
});
