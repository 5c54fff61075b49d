import { errorFor, KvasmError } from '../errors.js';
import { describeThrown } from '../protocol.js';
import type { WasmModule, WasmModuleFactory } from '../wasm-module.js';

/**
 * Runs the Emscripten glue with a module that is compiled already, and, for a build with threads, with a shared memory.
 * @throws GenerationError `out-of-memory` when the initial memory cannot be had.
 */
export function instantiate(
  createModule: WasmModuleFactory,
  compiled: WebAssembly.Module,
  memory?: WebAssembly.Memory,
): Promise<WasmModule> {
  return new Promise((resolve, reject) => {
    createModule({
      instantiateWasm(imports, done) {
        // The glue does not see a failure here, and would wait for ever.
        WebAssembly.instantiate(compiled, imports)
          .then(instance => done(instance, compiled))
          .catch(reject);
        return {};
      },
      printErr: line => console.warn(line),
      ...(memory && { wasmMemory: memory }),
    }).then(resolve, reject);
  }).catch((cause: unknown) => {
    if (!(cause instanceof RangeError)) throw cause;
    const reason = `The WebAssembly memory cannot be had (${describeThrown(cause)}).`;
    throw errorFor('out-of-memory', reason, { cause });
  }) as Promise<WasmModule>;
}

/** Wraps what compiling throws, with the file's address. */
export function compileFailed(label: string, cause: unknown): KvasmError {
  if (cause instanceof KvasmError) return cause;
  const reason = `${label} could not be compiled (${describeThrown(cause)}).`;
  return errorFor('load-failed', reason, { cause });
}
