// The WebAssembly build against PyTorch.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { goldenNames, readGolden } from './golden.mjs';
import { instantiate, load, nextToken, start, strategies } from './wasm-build.mjs';

const module = await instantiate();

for (const name of await goldenNames()) {
  test(`${name}: logits are those of PyTorch at every position`, async () => {
    const { config, weights, prompts } = await readGolden(name);
    const engine = load(module, config, weights);
    for (const { ids, vocabSize, logits } of prompts) {
      for (let position = 0; position < ids.length; position++) {
        const sequence = start(engine, ids.subarray(0, position + 1));
        nextToken(engine, sequence);
        const actual = sequence.logits();
        for (let id = 0; id < vocabSize; id++) {
          const expected = logits[position * vocabSize + id];
          // The README of tests/golden says why this much.
          const tolerance = 1e-4 * Math.max(Math.abs(expected), 1);
          assert.ok(
            Math.abs(actual[id] - expected) <= tolerance,
            `position ${position}, id ${id}: ${actual[id]} instead of ${expected}`,
          );
        }
        sequence.delete();
      }
    }
    engine.delete();
  });

  test(`${name}: greedy ids are those of PyTorch with every cache`, async () => {
    const { config, weights, prompts } = await readGolden(name);
    const engine = load(module, config, weights);
    for (const cache of Object.values(strategies)) {
      for (const { ids, greedy } of prompts) {
        const sequence = start(engine, ids, { cache });
        const drawn = Array.from(greedy, () => nextToken(engine, sequence));
        assert.deepEqual(drawn, Array.from(greedy));
        sequence.delete();
      }
    }
    engine.delete();
  });
}
