// The converter from multi-head to grouped-query checkpoints, on models made here.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { convertToGqa } from '../../scripts/convert-to-gqa.mjs';
import { makeCheckpoint } from '../../scripts/fixtures/make-checkpoint.mjs';
import { floatCodecs } from '../../scripts/lib/float-codecs.mjs';
import {
  instantiate,
  loadEngine,
  nextToken,
  startSequence,
} from '../../scripts/lib/wasm-engine.mjs';
import { numbers, readTensors, writeTensors } from './checkpoint-files.mjs';

const scratch = await mkdtemp(join(tmpdir(), 'kvasm-gqa-'));
after(() => rm(scratch, { recursive: true }));
let directories = 0;
const freshDir = () => join(scratch, String(directories++));

const SHAPE = { nLayer: 2, nHead: 4, nEmbd: 32, nPositions: 64, vocabSize: 300, std: 0.2 };
const HEAD_DIM = SHAPE.nEmbd / SHAPE.nHead;
const C_ATTN = /h\.(\d+)\.attn\.c_attn\.(weight|bias)$/;

async function madeModel(options = {}) {
  const dir = freshDir();
  await makeCheckpoint(dir, { ...SHAPE, ...options });
  return dir;
}

/** A model whose float32 weights are stored as `dtype`. */
async function storedAs(dtype) {
  const dir = await madeModel();
  const { metadata, tensors } = await readTensors(dir);
  const { size, write } = floatCodecs[dtype];
  const stored = [...tensors.values()].map(tensor => {
    const values = numbers(tensor);
    const data = Buffer.alloc(values.length * size);
    const view = new DataView(data.buffer, data.byteOffset, data.length);
    for (const [i, value] of values.entries()) write(view, i * size, value);
    return { ...tensor, dtype, data, bytes: data.length };
  });
  await writeTensors(dir, metadata, stored);
  return dir;
}

for (const [dtype, ulp] of [
  ['F32', 2 ** -24],
  ['F16', 2 ** -11],
  ['BF16', 2 ** -8],
]) {
  for (const nKvHead of [1, 2]) {
    test(`${dtype}: key and value heads are means of their groups, for ${nKvHead}`, async () => {
      const source = await storedAs(dtype);
      const dest = freshDir();
      await convertToGqa(source, dest, nKvHead);
      const before = await readTensors(source);
      const { metadata, tensors } = await readTensors(dest);
      assert.deepEqual(metadata, before.metadata);
      assert.deepEqual([...tensors.keys()], [...before.tensors.keys()]);
      for (const [name, tensor] of tensors) {
        const old = before.tensors.get(name);
        assert.equal(tensor.dtype, dtype);
        if (!C_ATTN.test(name)) {
          assert.deepEqual(tensor.shape, old.shape);
          assert.ok(tensor.data.equals(old.data), name);
          continue;
        }
        const columns = (SHAPE.nHead + 2 * nKvHead) * HEAD_DIM;
        assert.deepEqual(tensor.shape, [...old.shape.slice(0, -1), columns]);
        const [pooled, original] = [numbers(tensor), numbers(old)];
        for (const [i, actual] of pooled.entries()) {
          const row = Math.floor(i / columns);
          const head = Math.floor((i % columns) / HEAD_DIM);
          const dim = i % HEAD_DIM;
          const at = oldHead => original[(row * 3 * SHAPE.nHead + oldHead) * HEAD_DIM + dim];
          if (head < SHAPE.nHead) {
            assert.equal(actual, at(head));
            continue;
          }
          const kind = head < SHAPE.nHead + nKvHead ? 1 : 2;
          const target = (head - SHAPE.nHead) % nKvHead;
          // The definition, head by head: which query heads will read this one.
          const members = [0, 1, 2, 3].filter(h => Math.floor((h * nKvHead) / 4) === target);
          const mean =
            members.map(h => at(kind * SHAPE.nHead + h)).reduce((a, b) => a + b) / members.length;
          assert.ok(Math.abs(actual - mean) <= ulp * Math.abs(mean) + 2 ** -24, `${name} ${i}`);
        }
      }
    });
  }
}

test('as many heads as before give the same tensors', async () => {
  for (const dtype of Object.keys(floatCodecs)) {
    const [source, dest] = [await storedAs(dtype), freshDir()];
    await convertToGqa(source, dest, SHAPE.nHead);
    const [before, after] = [await readTensors(source), await readTensors(dest)];
    for (const [name, tensor] of after.tensors) {
      assert.ok(tensor.data.equals(before.tensors.get(name).data), name);
    }
  }
});

test('names may begin with transformer., and other files are copied', async () => {
  const source = await madeModel({ untied: true });
  const { metadata, tensors } = await readTensors(source);
  const renamed = [...tensors.values()].map(tensor => ({
    ...tensor,
    name: tensor.name === 'lm_head.weight' ? tensor.name : `transformer.${tensor.name}`,
  }));
  await writeTensors(source, metadata, renamed);
  await writeFile(join(source, 'README.md'), 'made');
  await writeFile(join(source, 'pytorch_model.bin'), 'the model as it was');
  await mkdir(join(source, 'onnx'));
  const dest = freshDir();
  const { pooled } = await convertToGqa(source, dest, 2);
  assert.equal(pooled, 2 * SHAPE.nLayer);
  assert.deepEqual((await readdir(dest)).sort(), [
    'README.md',
    'config.json',
    'merges.txt',
    'model.safetensors',
    'vocab.json',
  ]);
  assert.equal(await readFile(join(dest, 'README.md'), 'utf8'), 'made');
  const config = JSON.parse(await readFile(join(dest, 'config.json'), 'utf8'));
  const before = JSON.parse(await readFile(join(source, 'config.json'), 'utf8'));
  assert.deepEqual(config, { ...before, n_kv_head: 2 });
  const converted = await readTensors(dest);
  assert.deepEqual(
    [...converted.tensors.keys()],
    renamed.map(({ name }) => name),
  );
  const engine = await loadEngine(await instantiate(), dest);
  assert.equal(engine.config().nKvHead, 2);
  engine.delete();
});

/** Makes the key and value heads of each group the same in each c_attn of a model. */
async function equalise(dir, group) {
  const { metadata, tensors } = await readTensors(dir);
  for (const { name, data } of tensors.values()) {
    if (!C_ATTN.test(name)) continue;
    const headBytes = HEAD_DIM * 4;
    for (let head = 0; head < data.length / headBytes; head++) {
      const inRow = head % (3 * SHAPE.nHead);
      if (inRow < SHAPE.nHead) continue;
      const first = head - (inRow % group);
      data.copy(data, head * headBytes, first * headBytes, (first + 1) * headBytes);
    }
  }
  await writeTensors(dir, metadata, tensors.values());
}

test('where the heads of a group are equal, the converted model says the same', async () => {
  const module = await instantiate();
  for (const nKvHead of [1, 2]) {
    const [source, dest] = [await madeModel(), freshDir()];
    await equalise(source, SHAPE.nHead / nKvHead);
    await convertToGqa(source, dest, nKvHead);
    const engines = [await loadEngine(module, source), await loadEngine(module, dest)];
    const [perToken, shrunk] = engines.map(engine => engine.memory().kvPerToken);
    assert.equal(perToken / shrunk, SHAPE.nHead / nKvHead);
    const seen = new Set();
    // A small random model soon repeats itself, so many prompts say more than long texts.
    for (let prompt = 0; prompt < 20; prompt++) {
      const ids = [prompt * 13, 77, 299 - prompt];
      const sequences = engines.map(engine => startSequence(engine, ids));
      for (let step = 0; step < 10; step++) {
        const [expected, actual] = engines.map(nextToken);
        assert.equal(actual, expected);
        seen.add(actual);
        const [before, after] = sequences.map(sequence => sequence.logits());
        for (const [id, logit] of before.entries()) {
          assert.ok(Math.abs(after[id] - logit) <= 1e-5, `step ${step}, id ${id}`);
        }
      }
      for (const sequence of sequences) sequence.delete();
    }
    assert.ok(seen.size > 10, 'a model that says one thing proves little');
    for (const engine of engines) engine.delete();
  }
});

test('heads that differ make a model that says something else', async () => {
  const [source, dest] = [await madeModel(), freshDir()];
  await convertToGqa(source, dest, 1);
  const module = await instantiate();
  const logits = [];
  for (const dir of [source, dest]) {
    const engine = await loadEngine(module, dir);
    const sequence = startSequence(engine, [5, 77, 210]);
    nextToken(engine);
    logits.push(Float32Array.from(sequence.logits()));
    sequence.delete();
    engine.delete();
  }
  assert.notDeepEqual(logits[0], logits[1]);
});

test('what cannot be converted gives an error in one line, and no output', async () => {
  const source = await madeModel();
  const grouped = await madeModel({ nKvHead: 2 });
  const { metadata, tensors } = await readTensors(source);
  const all = [...tensors.values()];
  const spoilt = async change => {
    const dir = await madeModel();
    await writeTensors(dir, metadata, change(all));
    return dir;
  };
  const withoutBias = await spoilt(list => list.filter(t => t.name !== 'h.1.attn.c_attn.bias'));
  const mistyped = await spoilt(list =>
    list.map(t => (t.name === 'h.0.attn.c_attn.weight' ? { ...t, dtype: 'I32' } : t)),
  );
  const truncated = await madeModel();
  const whole = await readFile(join(truncated, 'model.safetensors'));
  await writeFile(join(truncated, 'model.safetensors'), whole.subarray(0, -1));
  const empty = freshDir();
  await mkdir(empty);
  for (const [dir, n, message] of [
    [source, 3, /3 does not divide n_head, which is 4/],
    [source, 8, /8 does not divide/],
    [source, 0, /0 is not a positive integer/],
    [grouped, 1, /grouped heads already \(n_kv_head is 2\)/],
    [withoutBias, 2, /h\.1\.attn\.c_attn\.bias is missing/],
    [mistyped, 2, /h\.0\.attn\.c_attn\.weight: I32 is not one of F32, F16, BF16/],
    [truncated, 2, /ends before ln_f\.bias is complete/],
    [empty, 2, /config\.json is missing/],
  ]) {
    const dest = freshDir();
    await assert.rejects(convertToGqa(dir, dest, n), error => {
      assert.match(error.message, message);
      assert.doesNotMatch(error.message, /\n/);
      return true;
    });
    await assert.rejects(readdir(dest), { code: 'ENOENT' });
  }
  await assert.rejects(convertToGqa(source, source, 2), /the same directory/);
  assert.deepEqual(
    await readFile(join(source, 'model.safetensors')).then(b => b.length),
    whole.length,
  );
});

test('the command line converts, and fails with one line', async () => {
  const run = promisify(execFile);
  const script = fileURLToPath(new URL('../../scripts/convert-to-gqa.mjs', import.meta.url));
  const [source, dest] = [await madeModel(), freshDir()];
  const { stdout } = await run(process.execPath, [script, source, dest, '--n-kv-head', '2']);
  assert.match(stdout, /from 4 to 2 key and value heads/);
  await assert.rejects(run(process.execPath, [script, source, dest, '--n-kv-head', '']), error => {
    assert.equal(error.code, 1);
    assert.match(error.stderr, /^convert-to-gqa: .*\n$/);
    return true;
  });
});
