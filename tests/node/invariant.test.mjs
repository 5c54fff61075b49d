// The one invariant in the WebAssembly build: the logits for a token are the same bits, however you got
// there. The reference is CacheStrategy none, which computes all anew for each token.

import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { test } from 'node:test';
import fc from 'fast-check';
import { randomModel } from './random-model.mjs';
import {
  build,
  instantiate,
  load,
  logitBytes,
  nextToken,
  start,
  strategies,
} from './wasm-build.mjs';

const module = await instantiate();

async function randomEngine(shape) {
  const { config, weights } = await randomModel(shape);
  return load(module, config, weights);
}

const shapes = fc
  .record({
    nLayer: fc.integer({ min: 1, max: 3 }),
    nKvHead: fc.integer({ min: 1, max: 3 }),
    group: fc.integer({ min: 1, max: 3 }),
    headDim: fc.integer({ min: 1, max: 40 }),
    nInner: fc.integer({ min: 1, max: 90 }),
    nPositions: fc.integer({ min: 2, max: 150 }),
    seed: fc.nat(),
    untied: fc.boolean(),
  })
  .map(({ group, headDim, ...shape }) => ({
    ...shape,
    nHead: shape.nKvHead * group,
    nEmbd: shape.nKvHead * group * headDim,
    vocabSize: 300,
  }));

/** Bytes of the logits of each token drawn, to the end of the position table. */
function generate(engine, prompt, cache) {
  const sequence = start(engine, prompt, { cache });
  const logits = [];
  while (sequence.remaining() > 0 && logits.length < 40) {
    nextToken(engine, sequence);
    logits.push(logitBytes(sequence));
  }
  sequence.delete();
  return logits;
}

test('cached and uncached logits are the same bits for any shape and prompt', async () => {
  await fc.assert(
    fc.asyncProperty(shapes, fc.double({ min: 0, max: 1, noNaN: true }), async (shape, part) => {
      const engine = await randomEngine(shape);
      const length = 1 + Math.floor(part * (shape.nPositions - 1));
      const prompt = Array.from({ length }, (_, i) => (i * 97 + shape.seed) % shape.vocabSize);
      const reference = generate(engine, prompt, strategies.none);
      for (const cache of [strategies.block, strategies.concat]) {
        const logits = generate(engine, prompt, cache);
        assert.equal(logits.length, reference.length);
        for (const [i, bytes] of logits.entries()) {
          assert.equal(Buffer.compare(bytes, reference[i]), 0, `token ${i}, cache ${cache}`);
        }
      }
      engine.delete();
    }),
    { numRuns: 60 },
  );
});

test('the cache grows by exactly 2 * n_layer * n_kv_head * head_dim * 4 bytes a token', async () => {
  const engine = await randomEngine({
    nLayer: 3,
    nHead: 6,
    nKvHead: 2,
    nEmbd: 48,
    nInner: 10,
    nPositions: 64,
    vocabSize: 300,
  });
  const perToken = 2 * 3 * 2 * 8 * 4;
  const sequence = start(engine, [1, 2, 3]);
  for (let tokens = 3; sequence.remaining() > 0; tokens++) {
    nextToken(engine, sequence);
    const memory = engine.memory();
    assert.equal(memory.kvPerToken, perToken);
    assert.equal(memory.kvTokens, tokens);
    assert.equal(memory.kvUsed, tokens * perToken);
    assert.equal(memory.kvReserved, 64 * perToken);
  }
  sequence.delete();
  assert.equal(engine.memory().kvUsed, 0);
  engine.delete();
});

test('memory stays as it is over a hundred loads and generations', async () => {
  const shape = { nLayer: 2, nHead: 2, nEmbd: 64, nInner: 64, nPositions: 64, vocabSize: 300 };
  const engineOnce = async () => {
    const engine = await randomEngine(shape);
    for (const cache of Object.values(strategies)) generate(engine, [1, 2, 3], cache);
    engine.delete();
  };
  for (let i = 0; i < 10; i++) await engineOnce();
  const size = module.HEAPU8.length;
  for (let i = 0; i < 100; i++) await engineOnce();
  assert.equal(module.HEAPU8.length, size);
});

test('vectors are in the build, and only threads share its memory (B123)', async () => {
  const file = `../../dist/wasm/kvasm-${build}.wasm`;
  const binary = await readFile(new URL(file, import.meta.url));
  // f32x4.mul and f32x4.add, as the binary format writes them.
  assert.ok(binary.includes(Buffer.from([0xfd, 0xe6, 0x01])));
  assert.ok(binary.includes(Buffer.from([0xfd, 0xe4, 0x01])));
  const isShared = module.HEAPU8.buffer instanceof SharedArrayBuffer;
  assert.equal(isShared, build.endsWith('-threads'));
});
