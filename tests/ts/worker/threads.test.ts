import fc from 'fast-check';
import { afterEach, describe, expect, it } from 'vitest';

import type { WasmThreads } from '../../../bindings/ts/wasm-module.js';
import { detectFeatures, whyMemoryIsNotShared } from '../../../bindings/ts/worker/features.js';
import { createSharedMemory } from '../../../bindings/ts/worker/shared-memory.js';
import type {
  ThreadHandle,
  ThreadMessage,
  ThreadReply,
} from '../../../bindings/ts/worker/thread-protocol.js';
import { planThreads, startThreads } from '../../../bindings/ts/worker/threads.js';

describe('the number of threads', () => {
  it('is by default at most half the processors, at least 1, and never many (B118)', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 1000 }), processors => {
        const { threads } = planThreads('auto', processors, undefined);
        expect(threads).toBeGreaterThanOrEqual(1);
        expect(threads).toBeLessThanOrEqual(Math.max(processors / 2, 1));
        expect(threads).toBeLessThanOrEqual(8);
      }),
    );
    expect(planThreads('auto', 4, undefined).threads).toBe(2);
    expect(planThreads('auto', 8, undefined).threads).toBe(4);
    expect(planThreads('auto', 64, undefined).threads).toBe(8);
  });

  it('is 1 on one processor, and where their number is not known (B118)', () => {
    expect(planThreads('auto', 1, undefined).threads).toBe(1);
    expect(planThreads('auto', undefined, undefined).threads).toBe(1);
  });

  it('is what is asked for, however few processors there are', () => {
    expect(planThreads(64, 2, undefined)).toMatchObject({ threads: 64, disappoints: false });
  });

  it('is 1 where there can be no threads, which only disappoints who asked for more (B103)', () => {
    const reason = 'the page is not cross-origin isolated';
    expect(planThreads(4, 8, reason)).toEqual({ threads: 1, reason, disappoints: true });
    expect(planThreads('auto', 8, reason)).toEqual({ threads: 1, reason, disappoints: false });
    expect(planThreads(1, 8, reason)).toMatchObject({ threads: 1, disappoints: false });
  });
});

describe('shared memory', () => {
  const features = { simd: true, relaxedSimd: true, threads: true };

  it('needs a page that is cross-origin isolated (B103)', () => {
    expect(whyMemoryIsNotShared(features, { crossOriginIsolated: true })).toBeUndefined();
    expect(whyMemoryIsNotShared(features, { crossOriginIsolated: false })).toMatch(
      /not cross-origin isolated .*Cross-Origin-Opener-Policy/,
    );
    expect(whyMemoryIsNotShared({ ...features, threads: false }, {})).toMatch(/no shared/);
  });

  const RealMemory = WebAssembly.Memory;
  afterEach(() => {
    WebAssembly.Memory = RealMemory;
  });

  /** A browser that refuses a memory that might grow beyond this. */
  function refuseAbove(megabytes: number): void {
    WebAssembly.Memory = class extends RealMemory {
      constructor(descriptor: WebAssembly.MemoryDescriptor) {
        if ((descriptor.maximum ?? 0) > megabytes * 16) throw new RangeError('out of memory');
        super(descriptor);
      }
    };
  }

  it('is as large as the browser grants (B112)', () => {
    refuseAbove(600);
    const granted = createSharedMemory();
    expect(granted?.buffer).toBeInstanceOf(SharedArrayBuffer);
    // From 16 to 512 MB in pages of 64 KB, and no further.
    expect(granted?.grow((512 - 16) * 16)).toBe(16 * 16);
    expect(() => granted?.grow(1)).toThrow(RangeError);
  });

  it('is none where not even little is granted (B112)', () => {
    refuseAbove(100);
    expect(createSharedMemory()).toBeUndefined();
  });
});

it('features are detected by modules that every engine can parse', () => {
  // What Node 20, on which this runs, has.
  expect(detectFeatures()).toMatchObject({ simd: true, threads: true });
});

class FakeThread implements ThreadHandle {
  readonly messages: ThreadMessage['type'][] = [];
  terminated = false;
  reply: (reply: ThreadReply) => void = () => {};
  fail: (reason: string) => void = () => {};
  readonly #answer: 'ready' | 'failed' | 'nothing';

  constructor(answer: 'ready' | 'failed' | 'nothing') {
    this.#answer = answer;
  }

  post(message: ThreadMessage): void {
    this.messages.push(message.type);
    if (message.type !== 'start') return;
    queueMicrotask(() => {
      if (this.#answer === 'ready') this.reply({ type: 'ready' });
      if (this.#answer === 'failed') this.reply({ type: 'failed', reason: 'no such thing' });
    });
  }
  onMessage(listener: (reply: ThreadReply) => void): void {
    this.reply = listener;
  }
  onFailure(listener: (reason: string) => void): void {
    this.fail = listener;
  }
  terminate(): void {
    this.terminated = true;
  }
}

describe('the start of threads', () => {
  const compiled = new WebAssembly.Module(Uint8Array.of(0, 0x61, 0x73, 0x6d, 1, 0, 0, 0));
  const memory = new WebAssembly.Memory({ initial: 1, maximum: 1, shared: true });

  function start(threads: readonly FakeThread[], { stacks = 100 } = {}) {
    let left = stacks;
    const made: number[] = [];
    const module: WasmThreads = {
      allocateStack: () => (left-- > 0 ? 1024 : 0),
      stackBytes: () => 1024,
      makeThreadPool: count => made.push(count),
    };
    const rest = [...threads];
    const spawn = () => rest.shift() ?? expect.fail('more threads than asked for');
    const shared = { module, compiled, memory };
    return { started: startThreads(shared, threads.length, 4, spawn, 50), made };
  }

  it('waits until all are ready, and only then lets them run', async () => {
    const threads = [new FakeThread('ready'), new FakeThread('ready')];
    const { started, made } = start(threads);
    expect(threads.map(({ messages }) => messages)).toEqual([['start'], ['start']]);
    expect(await started).toMatchObject({ threads: 3, reason: undefined });
    expect(made).toEqual([3]);
    expect(threads.map(({ messages }) => messages.at(-1))).toEqual(['run', 'run']);
  });

  it('goes on with those that are ready in time, ends the others, and says why', async () => {
    for (const answer of ['failed', 'nothing'] as const) {
      const bad = new FakeThread(answer);
      const good = new FakeThread('ready');
      const { started, made } = start([bad, good]);
      const { threads, reason } = await started;
      expect(threads).toBe(2);
      expect(made).toEqual([2]);
      expect(reason).toMatch(answer === 'failed' ? /no such thing/ : /not ready within 50 ms/);
      expect([bad.terminated, good.terminated]).toEqual([true, false]);
      // What it says later is of no concern.
      bad.reply({ type: 'ready' });
      expect(bad.messages).toEqual(['start']);
    }
  });

  it('goes on without those that there is no memory for', async () => {
    const { started } = start([new FakeThread('ready'), new FakeThread('ready')], { stacks: 1 });
    expect(await started).toMatchObject({
      threads: 2,
      reason: expect.stringMatching(/memory for its stack/),
    });
  });

  it('tells when a thread dies later on', async () => {
    for (const die of [
      (thread: FakeThread) => thread.reply({ type: 'failed', reason: 'it trapped' }),
      (thread: FakeThread) => thread.fail('it trapped'),
    ]) {
      const thread = new FakeThread('ready');
      const { died } = await start([thread]).started;
      die(thread);
      expect(await died).toBe('it trapped');
    }
  });
});
