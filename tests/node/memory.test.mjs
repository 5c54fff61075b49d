// What a load takes of the WebAssembly memory, which grows but never shrinks.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { randomModel } from './random-model.mjs';
import { instantiate, load, weightDtypes } from './wasm-build.mjs';

const MB = 1e6;
const model = await randomModel({
  nLayer: 7,
  nHead: 16,
  nEmbd: 1024,
  nPositions: 64,
  vocabSize: 500,
});

for (const [name, dtype] of Object.entries(weightDtypes)) {
  test(`a load takes less than 40 MB more than the engine holds, with ${name}`, async () => {
    const module = await instantiate();
    const engine = load(module, model.config, model.weights, { dtype });
    const { weights, activations, kvReserved } = engine.memory();
    const more = module.HEAPU8.length - weights - activations - kvReserved;
    assert.ok(more < 40 * MB, `${more} bytes more than ${weights + activations + kvReserved}`);
    engine.delete();
  });
}
