// GGUF files in the WebAssembly build, whose sizes have 32 bits.

import assert from 'node:assert/strict';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { makeGguf } from '../../scripts/fixtures/make-gguf.mjs';
import { ggufHeader, ggufTypes, ggufValue } from '../../scripts/lib/gguf.mjs';
import { ENGINE_DEFAULTS } from '../../scripts/lib/wasm-engine.mjs';
import { instantiate, load, logitBytes, nextToken, start } from './wasm-build.mjs';

const module = await instantiate();
const golden = name => fileURLToPath(new URL(`../golden/${name}/`, import.meta.url));
const fairyTale = fileURLToPath(new URL('../../models/fairy-tale/', import.meta.url));
const prompt = [1, 5, 2, 9, 9, 3];

let scratch;
before(async () => {
  scratch = await mkdtemp(join(tmpdir(), 'kvasm-gguf-'));
});
after(() => rm(scratch, { recursive: true, force: true }));

async function ggufOf(dir, options) {
  const path = join(scratch, 'model.gguf');
  await makeGguf(dir, path, options);
  return readFile(path);
}

const loadGguf = (bytes, options) => load(module, '', bytes, options);

async function loadSafetensors(dir) {
  const config = await readFile(join(dir, 'config.json'), 'utf8');
  return load(module, config, await readFile(join(dir, 'model.safetensors')));
}

/** Greedy tokens, and the bits of the logits they were drawn from. */
function run(engine, count) {
  const sequence = start(engine, prompt);
  const tokens = [];
  const logits = [];
  for (let i = 0; i < count; i++) {
    tokens.push(nextToken(engine, sequence));
    logits.push(logitBytes(sequence));
  }
  sequence.delete();
  engine.delete();
  return { tokens, logits: Buffer.concat(logits) };
}

for (const name of ['tied-f32', 'untied-bias', 'gqa', 'mqa', 'f16', 'bf16', 'null-inner']) {
  test(`${name}: F32 gives the bits that safetensors gives (B76, B78)`, async () => {
    const dir = golden(name);
    const bytes = await ggufOf(dir, { type: 'f32', tokenizer: false });
    const gguf = run(loadGguf(bytes), 8);
    const safetensors = run(await loadSafetensors(dir), 8);
    assert.deepEqual(gguf.tokens, safetensors.tokens);
    assert.ok(gguf.logits.equals(safetensors.logits));
  });
}

for (const type of ['f32', 'f16']) {
  test(`the bundled model as ${type} gives the bits that safetensors gives`, async () => {
    const gguf = run(loadGguf(await ggufOf(fairyTale, { type })), 30);
    const safetensors = run(await loadSafetensors(fairyTale), 30);
    assert.deepEqual(gguf.tokens, safetensors.tokens);
    // The position embeddings are F32 in both, the matrices F16 in the checkpoint.
    assert.ok(gguf.logits.equals(safetensors.logits));
  });
}

for (const [type, least] of [
  ['q8_0', 0.999],
  ['q4_0', 0.95],
]) {
  test(`the bundled model as ${type} gives nearly the same logits`, async () => {
    const floats = ({ logits }) => new Float32Array(Uint8Array.from(logits).buffer);
    const a = floats(run(loadGguf(await ggufOf(fairyTale, { type })), 1));
    const b = floats(run(await loadSafetensors(fairyTale), 1));
    const dot = (x, y) => x.reduce((sum, value, i) => sum + value * y[i], 0);
    const cosine = dot(a, b) / Math.sqrt(dot(a, a) * dot(b, b));
    assert.ok(cosine > least && cosine < 1, `cosine ${cosine}`);
  });
}

/** A loader that has taken these bytes. */
function feed(bytes) {
  const loader = new module.Loader('', ENGINE_DEFAULTS);
  module.HEAPU8.set(bytes, loader.stagingAddress());
  const status = loader.consume(bytes.length);
  return { loader, status };
}

const metadata = (n, more = []) => [
  ['general.architecture', ggufValue.text('gpt2')],
  ['gpt2.context_length', ggufValue.uint32(n)],
  ['gpt2.embedding_length', ggufValue.uint32(n)],
  ['gpt2.block_count', ggufValue.uint32(1)],
  ['gpt2.attention.head_count', ggufValue.uint32(1)],
  ...more,
];

/** The tensors of one layer of width n. */
function tensors(n) {
  const type = ggufTypes.f32;
  const vector = (name, size) => ({ name, shape: [size], type });
  const matrix = (name, rows, columns) => ({ name, shape: [rows, columns], type });
  const linear = (name, outputs, inputs) => [
    matrix(`blk.0.${name}.weight`, outputs, inputs),
    vector(`blk.0.${name}.bias`, outputs),
  ];
  const norm = name => [vector(`${name}.weight`, n), vector(`${name}.bias`, n)];
  return [
    matrix('token_embd.weight', n, n),
    matrix('position_embd.weight', n, n),
    ...norm('output_norm'),
    ...norm('blk.0.attn_norm'),
    ...linear('attn_qkv', 3 * n, n),
    ...linear('attn_output', n, n),
    ...norm('blk.0.ffn_norm'),
    ...linear('ffn_up', 4 * n, n),
    ...linear('ffn_down', n, 4 * n),
  ];
}

test('a model that 32-bit sizes cannot hold is out of memory, and others load after it', () => {
  // 2^16 and 2^24: squares of them wrap round to 0 in 32 bits, and the largest has 2^48 elements.
  for (const n of [1 << 16, (1 << 16) + 1, 1 << 24]) {
    const { loader, status } = feed(ggufHeader(metadata(n), tensors(n)));
    assert.equal(status.code, 'out-of-memory', status.message);
    loader.delete();
  }
  const { loader, status } = feed(ggufHeader(metadata(16), tensors(16)));
  assert.equal(status.code, '', status.message);
  assert.equal(loader.config().nEmbd, 16);
  loader.delete();
});

test('dimensions beyond 32 bits are not cut down to fit', () => {
  const wrong = tensors(16);
  wrong[0] = { ...wrong[0], shape: [2 ** 32 + 16, 16] };
  const first = feed(ggufHeader(metadata(16), wrong));
  assert.equal(first.status.code, 'invalid-model');
  first.loader.delete();
  wrong[0] = { ...wrong[0], shape: [16, 2 ** 32 + 16] };
  const second = feed(ggufHeader(metadata(16), wrong));
  assert.equal(second.status.code, 'invalid-model');
  assert.match(second.status.message, /token_embd\.weight.*4294967312/);
  second.loader.delete();
});

test('a text or an array beyond 32 bits is an error at once (B100)', () => {
  const header = ggufHeader(metadata(16, [['k', [8, Buffer.alloc(8)]]]), []);
  const at = header.lastIndexOf('k') + 5;
  for (const length of [2n ** 32n, 2n ** 32n + 3n, 2n ** 63n, 2n ** 64n - 1n]) {
    header.writeBigUInt64LE(length, at);
    const { loader, status } = feed(header);
    assert.equal(status.code, 'invalid-model');
    loader.delete();
  }
});

test('the tokenizer of the metadata can be read once the header is through', async () => {
  const bytes = await ggufOf(fairyTale, { type: 'q4_0' });
  const loader = new module.Loader('', ENGINE_DEFAULTS);
  assert.equal(loader.ggufTokenizer(), null);
  assert.equal(loader.config(), null);
  for (let at = 0; loader.fileBytes() === 0; at += loader.stagingSize()) {
    const piece = bytes.subarray(at, at + loader.stagingSize());
    module.HEAPU8.set(piece, loader.stagingAddress());
    assert.equal(loader.consume(piece.length).code, '');
  }
  assert.equal(loader.fileBytes(), bytes.length);
  const { model, pre, tokens, merges, tokenTypes } = loader.ggufTokenizer();
  assert.deepEqual([model, pre], ['gpt2', 'gpt-2']);
  const texts = ({ bytes: utf8, ends }) =>
    Array.from(ends, (end, i) => Buffer.from(utf8.subarray(ends[i - 1] ?? 0, end)).toString());
  const file = JSON.parse(await readFile(join(fairyTale, 'tokenizer.json'), 'utf8'));
  const expected = Object.entries(file.model.vocab).sort((a, b) => a[1] - b[1]);
  const list = texts(tokens);
  for (const [token, id] of expected) assert.equal(list[id], token);
  assert.equal(
    texts(merges).join('\n'),
    file.model.merges.map(merge => (Array.isArray(merge) ? merge.join(' ') : merge)).join('\n'),
  );
  assert.equal(tokenTypes.length, list.length);
  loader.delete();
});

test('an error names the file for what it is, and the module stays usable (B107)', () => {
  const { loader, status } = feed(Buffer.from('version https://git-lfs.github.com/spec/v1\n'));
  assert.equal(status.code, 'invalid-model');
  assert.match(status.message, /Git LFS/);
  loader.delete();
});
