// The builds with threads: the number of threads changes no bit, and too many do no harm.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { instantiate } from '../../scripts/lib/wasm-engine.mjs';
import { randomModel } from './random-model.mjs';
import { load, logitBytes, nextToken, start, weightDtypes } from './wasm-build.mjs';

const { KVASM_BUILD = 'simd' } = process.env;
const variant = KVASM_BUILD.replace(/-threads$/, '');
// Wide enough for each product to be divided among threads.
const shape = { nLayer: 2, nHead: 6, nEmbd: 384, nPositions: 96, vocabSize: 2000 };
const model = await randomModel(shape);

/** The logits of a prompt that takes several chunks, and of the tokens after it. */
function generate(module, dtype) {
  const engine = load(module, model.config, model.weights, { prefillChunk: 13, dtype });
  const sequence = start(
    engine,
    Array.from({ length: 40 }, (_, i) => (i * 37) % shape.vocabSize),
  );
  const logits = Array.from({ length: 20 }, () => {
    nextToken(engine, sequence);
    return logitBytes(sequence);
  });
  sequence.delete();
  engine.delete();
  return logits;
}

const alone = await instantiate(variant);
const expected = Object.fromEntries(
  Object.entries(weightDtypes).map(([name, dtype]) => [name, generate(alone, dtype)]),
);

for (const threads of [1, 2, 3, 8, 64]) {
  test(`${threads} threads give the bits of the build without threads`, async () => {
    const module = await instantiate(`${variant}-threads`, { threads });
    for (const [name, dtype] of Object.entries(weightDtypes)) {
      const logits = generate(module, dtype);
      for (const [i, bytes] of logits.entries()) {
        assert.equal(Buffer.compare(bytes, expected[name][i]), 0, `${name}, token ${i}`);
      }
    }
  });
}

test('engines of one instance share its threads', async () => {
  const module = await instantiate(`${variant}-threads`, { threads: 3 });
  const engines = [1, 2].map(() => load(module, model.config, model.weights));
  const sequences = engines.map(engine => start(engine, [1, 2, 3]));
  for (let i = 0; i < 10; i++) {
    const [a, b] = sequences.map((sequence, e) => {
      nextToken(engines[e], sequence);
      return logitBytes(sequence);
    });
    assert.equal(Buffer.compare(a, b), 0, `token ${i}`);
  }
  for (const s of sequences) s.delete();
  for (const e of engines) e.delete();
});
