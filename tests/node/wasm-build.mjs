// The WebAssembly build itself, below the package: models are loaded and sequences stepped through the
// surface that Embind gives.

import { readFile } from 'node:fs/promises';

const root = new URL('../../', import.meta.url);

export const strategies = { block: 0, concat: 1, none: 2 };

/** Instantiates a build of dist/wasm. */
export async function instantiate(variant = 'simd') {
  const { default: create } = await import(new URL(`dist/wasm/kvasm-${variant}.js`, root));
  const binary = await readFile(new URL(`dist/wasm/kvasm-${variant}.wasm`, root));
  return create({
    instantiateWasm(imports, done) {
      WebAssembly.instantiate(binary, imports).then(result => done(result.instance, result.module));
      return {};
    },
  });
}

function check(status) {
  if (status.code !== '') throw new Error(`${status.code}: ${status.message}`);
}

/** Loads a model from the bytes of its files; throws an Error that starts with the status code. */
export function load(module, config, weights, contextLength = 0) {
  const loader = new module.Loader(config, contextLength);
  try {
    check(loader.status());
    for (let at = 0; at < weights.length; at += loader.stagingSize()) {
      const piece = weights.subarray(at, at + loader.stagingSize());
      module.HEAPU8.set(piece, loader.stagingAddress());
      check(loader.consume(piece.length));
    }
    check(loader.finish());
    return loader.takeEngine();
  } finally {
    loader.delete();
  }
}

/** Starts a greedy sequence. */
export function start(engine, prompt, { cache = strategies.block, ...options } = {}) {
  const sequence = engine.createSequence(Int32Array.from(prompt), {
    cache,
    temperature: 0,
    topK: 0,
    topP: 1,
    seedLow: 0,
    seedHigh: 0,
    vocabLimit: 0,
    ...options,
  });
  check(sequence.status());
  return sequence;
}

/** The next token, past any prefill. */
export function nextToken(sequence) {
  for (;;) {
    const token = sequence.step();
    if (token >= 0) return token;
    if (token === -2) check(sequence.status());
  }
}

/** A copy of the bytes of the logits that the last token was drawn from. */
export const logitBytes = sequence => {
  const { buffer, byteOffset, byteLength } = sequence.logits();
  return Buffer.from(buffer.slice(byteOffset, byteOffset + byteLength));
};
