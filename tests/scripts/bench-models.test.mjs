// The peers' model files: made from one checkpoint, and nothing lost but what the format loses.

import assert from 'node:assert/strict';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import fc from 'fast-check';
import { makeBenchCheckpoint, mutedIds, openCheckpoint } from '../../bench/peers/checkpoint.mjs';
import { writeGguf } from '../../bench/peers/gguf.mjs';
import { writeOnnx } from '../../bench/peers/onnx.mjs';
import { int8Columns, q4Blocks, q8Blocks, transpose } from '../../bench/peers/quantise.mjs';
import { makeVocabulary } from '../../scripts/fixtures/make-checkpoint.mjs';
import { floatCodecs } from '../../scripts/lib/float-codecs.mjs';

const scratch = await mkdtemp(join(tmpdir(), 'kvasm-bench-'));
after(() => rm(scratch, { recursive: true }));
const checkpointDir = join(scratch, 'checkpoint');
await makeBenchCheckpoint(checkpointDir, { shape: 'tiny' });
const checkpoint = await openCheckpoint(checkpointDir);
after(() => checkpoint.close());
const { n_embd: width, n_layer: layers, vocab_size: vocabSize } = checkpoint.config;

// Not so small that a scale would be less than the smallest float16.
const weights = fc
  .array(fc.integer({ min: -4000, max: 4000 }), { minLength: 64, maxLength: 64 })
  .map(values => Float32Array.from(values, value => value / 1000));
const half = (bytes, at) =>
  floatCodecs.F16.read(new DataView(bytes.buffer, bytes.byteOffset, bytes.length), at);
const low = byte => (byte & 15) - 8;
const high = byte => (byte >> 4) - 8;

/** Each value is one of a grid of this step, and the nearest but for rounding of the step itself. */
function assertNear(values, decoded, stepAt) {
  for (const [i, value] of values.entries()) {
    const step = Math.abs(stepAt(i));
    // The end of a 4-bit grid that is not the extreme one lacks one step.
    assert.ok(
      Math.abs(decoded[i] - value) <= step * 1.01 + 1e-6,
      `${i}: ${value} to ${decoded[i]}`,
    );
  }
}

test('blocks of GGUF decode to within a step of what they were made from', () => {
  fc.assert(
    fc.property(weights, values => {
      const [eight, four] = [q8Blocks(values), q4Blocks(values)];
      assert.equal(eight.length, 2 * 34);
      assert.equal(four.length, 2 * 18);
      const scales = {
        eight: i => half(eight, 34 * (i >> 5)),
        four: i => half(four, 18 * (i >> 5)),
      };
      const decoded8 = values.map(
        (_, i) => scales.eight(i) * eight.readInt8(34 * (i >> 5) + 2 + (i & 31)),
      );
      const decoded4 = values.map((_, i) => {
        const byte = four[18 * (i >> 5) + 2 + (i & 15)];
        return scales.four(i) * ((i & 31) < 16 ? low(byte) : high(byte));
      });
      assertNear(values, decoded8, i => scales.eight(i) * 0.6);
      assertNear(values, decoded4, scales.four);
    }),
  );
});

test("ONNX's integers decode to within a step of what they were made from", () => {
  fc.assert(
    fc.property(weights, values => {
      const columns = 8;
      const eight = int8Columns(values, values.length / columns, columns);
      const decoded8 = values.map((_, i) => eight.scales[i % columns] * eight.bytes[i]);
      assertNear(values, decoded8, i => eight.scales[i % columns] * 0.5);
    }),
  );
});

test('zeros stay zeros in every format', () => {
  const zeros = new Float32Array(32);
  assert.ok(q8Blocks(zeros).every(byte => byte === 0));
  assert.deepEqual([...q4Blocks(zeros).subarray(2)], Array(16).fill(0x88));
  assert.ok(int8Columns(zeros, 4, 8).bytes.every(value => value === 0));
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

/** Reads what the writer wrote, by the format's definition. */
function parseGguf(file) {
  let at = 0;
  const take = length => {
    at += length;
    return at - length;
  };
  const text = length => {
    const begin = take(length);
    return file.toString('utf8', begin, begin + length);
  };
  const u32 = () => file.readUInt32LE(take(4));
  const u64 = () => Number(file.readBigUInt64LE(take(8)));
  const readers = {
    4: u32,
    5: () => file.readInt32LE(take(4)),
    6: () => file.readFloatLE(take(4)),
    8: () => text(u64()),
    9: () => {
      const read = readers[u32()];
      return Array.from({ length: u64() }, read);
    },
  };
  const readText = readers[8];
  assert.equal(text(4), 'GGUF');
  assert.equal(u32(), 3);
  const [tensorCount, entryCount] = [u64(), u64()];
  const metadata = {};
  for (let i = 0; i < entryCount; i++) {
    const key = readText();
    metadata[key] = readers[u32()]();
  }
  const tensors = Array.from({ length: tensorCount }, () => {
    const name = readText();
    const sizes = Array.from({ length: u32() }, u64);
    return { name, sizes, type: u32(), offset: u64() };
  });
  const begin = Math.ceil(at / 32) * 32;
  return { metadata, tensors, data: file.subarray(begin) };
}

test('a GGUF file holds the checkpoint, its matrices transposed, at aligned offsets', async () => {
  const path = join(scratch, 'f32.gguf');
  await writeGguf(path, checkpoint, 'f32');
  const { metadata, tensors, data } = parseGguf(await readFile(path));
  assert.equal(metadata['general.architecture'], 'gpt2');
  assert.equal(metadata['gpt2.block_count'], layers);
  assert.equal(metadata['tokenizer.ggml.tokens'].length, vocabSize);
  assert.equal(tensors.length, 4 + 12 * layers);
  const valuesOf = name => {
    const { sizes, offset } = tensors.find(tensor => tensor.name === name);
    const count = sizes.reduce((a, b) => a * b);
    return Float32Array.from({ length: count }, (_, i) => data.readFloatLE(offset + 4 * i));
  };
  for (const { offset } of tensors) assert.equal(offset % 32, 0);
  assert.deepEqual(valuesOf('token_embd.weight'), await checkpoint.tensor('wte.weight'));
  assert.deepEqual(
    valuesOf('blk.1.ffn_up.weight'),
    transpose(await checkpoint.tensor('h.1.mlp.c_fc.weight'), width, 4 * width),
  );
  assert.deepEqual(valuesOf('output_norm.bias'), await checkpoint.tensor('ln_f.bias'));
});

test('quantised GGUF files end where their last tensor does', async () => {
  for (const [precision, embedding, matrix] of [
    ['q8_0', 8, 8],
    ['q4_0', 8, 2],
  ]) {
    const path = join(scratch, `${precision}.gguf`);
    await writeGguf(path, checkpoint, precision);
    const { tensors, data } = parseGguf(await readFile(path));
    const byName = new Map(tensors.map(tensor => [tensor.name, tensor]));
    assert.equal(byName.get('token_embd.weight').type, embedding);
    assert.equal(byName.get('blk.0.attn_qkv.weight').type, matrix);
    assert.equal(byName.get('blk.0.attn_qkv.bias').type, 0);
    const last = tensors.at(-1);
    assert.equal(data.length, last.offset + Math.ceil((4 * width) / 32) * 32);
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
