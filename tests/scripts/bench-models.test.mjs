// The peers' model files: made from one checkpoint, and nothing lost but what the format loses.

import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import fc from 'fast-check';
import { makeBenchCheckpoint, mutedIds, openCheckpoint } from '../../bench/peers/checkpoint.mjs';
import { writeOnnx } from '../../bench/peers/onnx.mjs';
import { int8Columns, transpose } from '../../bench/peers/onnx-matrices.mjs';
import { makeVocabulary } from '../../scripts/fixtures/make-checkpoint.mjs';

const scratch = await mkdtemp(join(tmpdir(), 'kvasm-bench-'));
after(() => rm(scratch, { recursive: true }));
const checkpointDir = join(scratch, 'checkpoint');
await makeBenchCheckpoint(checkpointDir, { shape: 'tiny' });
const checkpoint = await openCheckpoint(checkpointDir);
after(() => checkpoint.close());
const { n_embd: width, n_layer: layers, vocab_size: vocabSize } = checkpoint.config;

const COLUMNS = 8;
// Not so small that a scale would be subnormal.
const matrix = fc
  .array(fc.integer({ min: -4000, max: 4000 }), { minLength: 64, maxLength: 64 })
  .map(values => Float32Array.from(values, value => value / 1000));

test('a matrix in bytes is within half a step of what it was made from, column by column', () => {
  fc.assert(
    fc.property(matrix, values => {
      const { bytes, scales } = int8Columns(values, values.length / COLUMNS, COLUMNS);
      for (const [i, value] of values.entries()) {
        const scale = scales[i % COLUMNS];
        assert.ok(Math.abs(scale * bytes[i] - value) <= 0.501 * scale, `${i}: ${value}`);
      }
      for (const [column, scale] of scales.entries()) {
        const largest = Math.max(
          ...values.filter((_, i) => i % COLUMNS === column).map(value => Math.abs(value)),
        );
        assert.ok(Math.abs(127 * scale - largest) <= 1e-6 * largest);
      }
    }),
  );
});

test('a matrix of zeros has bytes of zeros', () => {
  assert.ok(int8Columns(new Float32Array(32), 4, COLUMNS).bytes.every(value => value === 0));
});

test('a transposed matrix has rows for columns, and transposed again is itself', () => {
  assert.deepEqual(
    transpose(Float32Array.of(1, 2, 3, 4, 5, 6), 2, 3),
    Float32Array.of(1, 4, 2, 5, 3, 6),
  );
  fc.assert(
    fc.property(matrix, values => {
      const [rows, columns] = [values.length / COLUMNS, COLUMNS];
      assert.deepEqual(transpose(transpose(values, rows, columns), columns, rows), values);
    }),
  );
});

test('what is no printable ASCII, and the end of the text, has no embedding', async () => {
  const { tokens } = makeVocabulary(vocabSize);
  const muted = new Set(mutedIds(tokens));
  assert.ok(muted.has(vocabSize - 1));
  assert.equal(muted.size, 256 - 95 + 1);
  const wte = await checkpoint.tensor('wte.weight');
  for (let id = 0; id < vocabSize; id++) {
    const isZero = wte.subarray(id * width, (id + 1) * width).every(value => value === 0);
    assert.equal(isZero, muted.has(id), tokens[id]);
  }
});

/** Stands for onnx-proto, and keeps the model as it is given. */
function recorder() {
  const recorded = {};
  const ModelProto = {
    create: model => Object.assign(recorded, model),
    encode: () => ({ finish: () => Buffer.alloc(0) }),
  };
  return { onnx: { ModelProto }, recorded };
}

for (const precision of ['fp32', 'int8']) {
  test(`the ONNX graph of ${precision} uses only what is there, and makes all that it promises`, async () => {
    const { onnx, recorded } = recorder();
    await writeOnnx(join(scratch, 'model.onnx'), checkpoint, precision, onnx);
    const { input, output, node, initializer } = recorded.graph;
    const elementBytes = { 1: 4, 3: 1, 7: 8 };
    for (const { name, dims, dataType, rawData } of initializer) {
      const elements = dims.reduce((a, b) => a * b, 1);
      assert.equal(rawData.length, elements * elementBytes[dataType], name);
    }
    const known = new Set([...input, ...initializer].map(({ name }) => name));
    const names = [...known, ...node.flatMap(one => one.output)];
    assert.equal(known.size, input.length + initializer.length);
    assert.equal(new Set(names).size, names.length, 'no name is given twice');
    for (const one of node) {
      for (const name of one.input) assert.ok(known.has(name), `${one.name} uses ${name}`);
      for (const name of one.output) known.add(name);
    }
    for (const { name } of output) assert.ok(known.has(name), name);
    assert.equal(output.length, 1 + 2 * layers);
    const products = node.filter(({ opType }) => opType === 'MatMulInteger');
    assert.equal(products.length, precision === 'fp32' ? 0 : 4 * layers + 1);
  });
}
