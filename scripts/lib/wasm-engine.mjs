// The WebAssembly build of dist/wasm, below the package: for scripts and benches that want the engine
// alone, without a worker, a tokenizer or a protocol in between.

import { open, readFile } from 'node:fs/promises';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { startThread } from '../../dist/thread-script-node.js';
import {
  wasmKvDtypes as kvDtypes,
  wasmCacheStrategies as strategies,
  wasmEventKinds,
  wasmWeightDtypes as weightDtypes,
} from '../../dist/wasm-module.js';
import { createSharedMemory } from '../../dist/worker/shared-memory.js';
import { startThreads } from '../../dist/worker/threads.js';

const root = new URL('../../', import.meta.url);

export { kvDtypes, strategies, weightDtypes };

export const ENGINE_DEFAULTS = {
  dtype: weightDtypes.f32,
  contextLength: 0,
  window: 0,
  kvDtype: kvDtypes.f32,
  kvBytes: 0,
  prefixCache: false,
  prefillChunk: 64,
};

/** Greedy. */
export const SEQUENCE_DEFAULTS = {
  output: 0,
  cache: strategies.block,
  temperature: 0,
  topK: 0,
  topP: 1,
  minP: 0,
  repetitionPenalty: 1,
  frequencyPenalty: 0,
  presencePenalty: 0,
  logitBias: [],
  seedLow: 1,
  seedHigh: 0,
  vocabLimit: 0,
  shift: false,
  nKeep: 0,
  reusePrefix: false,
  promptLogprobs: -1,
};

/** Throws where a call of the engine did not succeed. */
export function check({ code, message }) {
  if (code !== '') throw new Error(`${code}: ${message}`);
}

/**
 * A build of dist/wasm by its name: `simd` or `relaxed-simd`, and with `-threads` behind it one that computes with that many
 * threads, the caller's included.
 */
export async function instantiate(build = 'simd', { threads = 1 } = {}) {
  const glue = new URL(`dist/wasm/kvasm-${build}.js`, root);
  const [{ default: create }, binary] = await Promise.all([
    import(glue),
    readFile(new URL(`dist/wasm/kvasm-${build}.wasm`, root)),
  ]).catch(error => {
    throw new Error(`there is no build ${build} in dist/wasm; run scripts/build-wasm`, {
      cause: error,
    });
  });
  const compiled = await WebAssembly.compile(binary);
  const memory = build.endsWith('-threads') ? createSharedMemory() : undefined;
  const module = await create({
    ...(memory && { wasmMemory: memory }),
    instantiateWasm(imports, done) {
      WebAssembly.instantiate(compiled, imports).then(instance => done(instance, compiled));
      return {};
    },
  });
  if (memory) {
    const processors = availableParallelism();
    const shared = { module, compiled, memory };
    const started = await startThreads(shared, threads - 1, processors, startThread, 60_000);
    if (started.reason !== undefined) throw new Error(started.reason);
  } else if (threads !== 1) {
    throw new Error(`the build ${build} has 1 thread, not ${threads}`);
  }
  return module;
}

/** Loads the model in a directory; its weights pass through the engine's staging buffer only. */
export async function loadEngine(module, dir, options = {}) {
  const config = await readFile(join(dir, 'config.json'), 'utf8');
  const loader = new module.Loader(config, { ...ENGINE_DEFAULTS, ...options });
  let file;
  try {
    check(loader.status());
    file = await open(join(dir, 'model.safetensors'));
    const piece = Buffer.allocUnsafe(loader.stagingSize());
    for (;;) {
      const { bytesRead } = await file.read(piece, 0, piece.length, null);
      if (bytesRead === 0) break;
      module.HEAPU8.set(piece.subarray(0, bytesRead), loader.stagingAddress());
      check(loader.consume(bytesRead));
    }
    check(loader.finish());
    return loader.takeEngine();
  } finally {
    await file?.close();
    loader.delete();
  }
}

export function startSequence(engine, prompt, options = {}) {
  const sequence = engine.startSequence(Int32Array.from(prompt), {
    ...SEQUENCE_DEFAULTS,
    ...options,
  });
  const status = sequence.status();
  if (status.code !== '') sequence.delete();
  check(status);
  return sequence;
}

/** Steps the engine once, and returns the tokens drawn as [sequence id, token] pairs. */
export function stepOnce(engine) {
  const events = engine.step();
  if (events.length === 0) throw new Error('the engine has nothing to compute');
  const drawn = [];
  for (let at = 0; at < events.length; at += 3) {
    if (events[at + 1] === wasmEventKinds.failed) throw new Error(`sequence ${events[at]} failed`);
    if (events[at + 1] === wasmEventKinds.token) drawn.push([events[at], events[at + 2]]);
  }
  return drawn;
}

/** The next token of an engine's only running sequence, past any prefill. */
export function nextToken(engine) {
  for (;;) {
    const [first] = stepOnce(engine);
    if (first !== undefined) return first[1];
  }
}
