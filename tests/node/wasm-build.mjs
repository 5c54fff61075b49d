// The WebAssembly build itself, below the package: models are loaded and sequences stepped through the
// surface that Embind gives.

import {
  check,
  ENGINE_DEFAULTS,
  instantiate as instantiateBuild,
  kvDtypes,
  SEQUENCE_DEFAULTS,
  strategies,
  weightDtypes,
} from '../../scripts/lib/wasm-engine.mjs';

export { check, kvDtypes, strategies, weightDtypes };

/** The build and the number of threads that scripts/run-tests.mjs runs all of these tests with. */
export const { KVASM_BUILD: build = 'simd', KVASM_THREADS: threads = 1 } = process.env;

export const instantiate = () => instantiateBuild(build, { threads: Number(threads) });

const eventKinds = ['prefill', 'token', 'failed'];

/** Loads a model from the bytes of its files; throws an Error that starts with the status code. */
export function load(module, config, weights, options = {}) {
  const loader = new module.Loader(config, {
    ...ENGINE_DEFAULTS,
    prefixCache: true,
    ...options,
  });
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

const greedy = { ...SEQUENCE_DEFAULTS, reusePrefix: true };

/** Starts a sequence, a greedy one unless the options say otherwise. */
export function start(engine, prompt, options = {}) {
  const sequence = engine.startSequence(Int32Array.from(prompt), { ...greedy, ...options });
  return started(sequence);
}

/** A sequence whose start was well; frees it otherwise. */
export function started(sequence) {
  const status = sequence.status();
  if (status.code !== '') sequence.delete();
  check(status);
  return sequence;
}

/** Goes on with more ids. */
export function append(sequence, ids, options = {}) {
  check(sequence.append(Int32Array.from(ids), { ...greedy, ...options }));
}

/** One step of the engine: an `{ id, kind, token }` for each sequence that it computed, or that failed. */
export function stepEvents(engine) {
  // A copy: the next call of anything may move it.
  const numbers = Int32Array.from(engine.step());
  return Array.from({ length: numbers.length / 3 }, (_, i) => {
    const [id, kind, token] = numbers.subarray(3 * i, 3 * i + 3);
    return { id, kind: eventKinds[kind], token };
  });
}

/** The next token of a sequence, past any prefill. */
export function nextToken(engine, sequence) {
  for (;;) {
    const events = stepEvents(engine);
    if (events.length === 0) throw new Error('Nothing is left to compute');
    const event = events.find(({ id }) => id === sequence.id());
    if (event?.kind === 'failed') check(sequence.status());
    if (event?.kind === 'token') return event.token;
  }
}

/** A copy of the bytes of the logits that the last token was drawn from. */
export const logitBytes = sequence => {
  const { buffer, byteOffset, byteLength } = sequence.logits();
  return Buffer.from(buffer.slice(byteOffset, byteOffset + byteLength));
};
