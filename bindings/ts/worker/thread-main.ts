/** A thread: another instance of the engine's WebAssembly, with the same memory and without the glue. */

import { describeThrown } from '../protocol.js';
import type { ThreadMessage, ThreadReply } from './thread-protocol.js';

/** A thread's end of the line to its Worker. */
export interface ThreadPort {
  post(reply: ThreadReply): void;
  onMessage(listener: (message: ThreadMessage) => void): void;
}

// bindings/threads.cc says what they do.
interface ThreadExports {
  _emscripten_wasm_worker_initialize(stack: number, stackBytes: number): void;
  kvasm_run_thread(): void;
  kvasm_thread_failed(): void;
}

export function serveThread(port: ThreadPort): void {
  let exports: ThreadExports | undefined;
  const fail = (error: unknown) => port.post({ type: 'failed', reason: describeThrown(error) });
  port.onMessage(message => {
    if (message.type === 'run') {
      run(exports, fail);
      return;
    }
    start(message).then(started => {
      exports = started;
      port.post({ type: 'ready' });
    }, fail);
  });
}

async function start(message: Extract<ThreadMessage, { type: 'start' }>): Promise<ThreadExports> {
  const { module, memory, stack, stackBytes } = message;
  const instance = await WebAssembly.instantiate(module, importsOf(module, memory));
  const exports = instance.exports as unknown as ThreadExports;
  exports._emscripten_wasm_worker_initialize(stack, stackBytes);
  return exports;
}

/** Blocks for good, unless it traps. */
function run(exports: ThreadExports | undefined, fail: (error: unknown) => void): void {
  try {
    exports?.kvasm_run_thread();
  } catch (error) {
    // Somebody may be waiting for what this thread was doing.
    exports?.kvasm_thread_failed();
    fail(error);
  }
}

/** The memory, and functions that a thread has no business to call. */
function importsOf(module: WebAssembly.Module, memory: WebAssembly.Memory): WebAssembly.Imports {
  const imports: Record<string, Record<string, WebAssembly.ImportValue>> = {};
  for (const { module: from, name, kind } of WebAssembly.Module.imports(module)) {
    const refuse = () => {
      throw new Error(`a thread called ${from}.${name}`);
    };
    imports[from] ??= {};
    imports[from][name] = kind === 'memory' ? memory : refuse;
  }
  return imports;
}
