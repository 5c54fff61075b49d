/** The threads of an engine: how many there should be, and their start. */

import type { WasmThreads } from '../wasm-module.js';
import type { ThreadHandle } from './thread-protocol.js';

/** How many threads an engine is to have, the one of its Worker included, and why. */
export interface ThreadPlan {
  readonly threads: number;
  readonly reason: string;
  /** Whether that is less than what was asked for. */
  readonly disappoints: boolean;
}

/** More than that gain little by default: one token's weights come from a memory that they share. */
const mostByDefault = 8;

/**
 * @param processors What the machine says it has, if it does.
 * @param obstacle Why there can be no threads, if so.
 */
export function planThreads(
  asked: number | 'auto',
  processors: number | undefined,
  obstacle: string | undefined,
): ThreadPlan {
  if (asked === 1) return { threads: 1, reason: 'threads is 1', disappoints: false };
  if (obstacle !== undefined) {
    return { threads: 1, reason: obstacle, disappoints: asked !== 'auto' };
  }
  if (asked !== 'auto') {
    return { threads: asked, reason: `threads is ${asked}`, disappoints: false };
  }
  if (processors === undefined) {
    const reason = 'it is not known how many processors there are';
    return { threads: 1, reason, disappoints: false };
  }
  // The logical processors of one core share what computes, and one is left to the page.
  const threads = Math.max(Math.min(Math.floor(processors / 2), mostByDefault), 1);
  const reason = `half of ${processors} processors, at least 1 and at most ${mostByDefault}`;
  return { threads, reason, disappoints: false };
}

/** What became of a plan. */
export interface StartedThreads {
  /** The one of the Worker included. */
  readonly threads: number;
  /** Why they are fewer than planned, if they are. */
  readonly reason: string | undefined;
  /** Resolves with the reason if a thread dies later on. */
  readonly died: Promise<string>;
}

/** What is shared with each thread. */
export interface SharedInstance {
  readonly module: WasmThreads;
  readonly compiled: WebAssembly.Module;
  readonly memory: WebAssembly.Memory;
}

/** Starts `count` threads beside the Worker's own, or as many of them as are ready within `timeout` milliseconds. */
export async function startThreads(
  { module, compiled, memory }: SharedInstance,
  count: number,
  processors: number | undefined,
  startThread: () => ThreadHandle,
  timeout: number,
): Promise<StartedThreads> {
  let reason: string | undefined;
  const stackBytes = module.stackBytes();
  const ready: ThreadHandle[] = [];
  const late = new Set<ThreadHandle>();
  const starts = Array.from({ length: count }, async () => {
    const stack = module.allocateStack();
    if (stack === 0) throw new Error('there is no memory for its stack');
    const thread = startThread();
    late.add(thread);
    thread.post({ type: 'start', module: compiled, memory, stack, stackBytes });
    await waitUntilReady(thread);
    // One that comes too late is gone already.
    if (late.delete(thread)) ready.push(thread);
  });
  let timer: ReturnType<typeof setTimeout> | undefined;
  const timedOut = new Promise<void>(resolve => {
    timer = setTimeout(() => {
      reason = `it was not ready within ${timeout} ms`;
      resolve();
    }, timeout);
  });
  const settled = Promise.all(
    starts.map(start =>
      start.catch((error: unknown) => {
        reason = error instanceof Error ? error.message : String(error);
      }),
    ),
  );
  await Promise.race([settled, timedOut]);
  clearTimeout(timer);
  for (const thread of late) thread.terminate();
  late.clear();
  module.makeThreadPool(ready.length + 1, processors ?? ready.length + 1);
  const died = new Promise<string>(resolve => {
    for (const thread of ready) {
      thread.onMessage(reply => {
        if (reply.type === 'failed') resolve(reply.reason);
      });
      thread.onFailure(resolve);
      thread.post({ type: 'run' });
    }
  });
  return {
    threads: ready.length + 1,
    reason: ready.length === count ? undefined : `a thread did not start: ${reason}`,
    died,
  };
}

function waitUntilReady(thread: ThreadHandle): Promise<void> {
  return new Promise((resolve, reject) => {
    thread.onMessage(reply => {
      if (reply.type === 'ready') resolve();
      else reject(new Error(reply.reason));
    });
    thread.onFailure(failure => reject(new Error(failure)));
  });
}
