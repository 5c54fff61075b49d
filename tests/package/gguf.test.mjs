// A GGUF file alone: text in, text out.

import assert from 'node:assert/strict';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { Engine, ModelError } from '../../dist/node.js';
import { makeGguf } from '../../scripts/fixtures/make-gguf.mjs';

const fairyTale = fileURLToPath(new URL('../../models/fairy-tale/', import.meta.url));
const prompt = 'Once upon a time there was a king who had three sons. “Ähm …”';

let scratch;
let expected;
before(async () => {
  scratch = await mkdtemp(join(tmpdir(), 'kvasm-gguf-'));
  expected = await generate(fairyTale);
});
after(() => rm(scratch, { recursive: true, force: true }));

async function generate(source) {
  const engine = await Engine.load(source);
  // The checkpoint's generation_config.json asks for a penalty, of which a GGUF file says nothing.
  const options = { maxTokens: 40, temperature: 0, repetitionPenalty: 1 };
  const { text, usage } = await engine.generate(prompt, options).result();
  const { config, endOfText } = engine.info;
  await engine.dispose();
  return { text, usage, config, endOfText };
}

for (const type of ['f32', 'f16']) {
  test(`as ${type} it gives the text that the checkpoint gives`, async () => {
    const path = join(scratch, `${type}.gguf`);
    await makeGguf(fairyTale, path, { type });
    assert.deepEqual(await generate(path), expected);
    if (type === 'f16') assert.deepEqual(await generate(await readFile(path)), expected);
  });
}

for (const type of ['q8_0', 'q4_0']) {
  test(`as ${type} it gives text`, async () => {
    const path = join(scratch, `${type}.gguf`);
    await makeGguf(fairyTale, path, { type });
    const { text, usage, endOfText } = await generate(path);
    assert.equal(endOfText, expected.endOfText);
    assert.equal(usage.prompt, expected.usage.prompt);
    assert.match(text, /^[\s\p{L}\p{P}]+$/u);
  });
}

test('a file without a tokenizer takes the one beside it', async () => {
  const folder = await mkdtemp(join(scratch, 'beside-'));
  await makeGguf(fairyTale, join(folder, 'model.gguf'), { type: 'f32', tokenizer: false });
  const lacking = await Engine.load(folder).catch(error => error);
  assert.ok(lacking instanceof ModelError);
  assert.equal(lacking.code, 'invalid-tokenizer');
  for (const name of ['vocab.json', 'merges.txt']) {
    await writeFile(join(folder, name), await readFile(join(fairyTale, name)));
  }
  assert.equal((await generate(folder)).text, expected.text);
});

test('contextLength is refused once the header is there', async () => {
  const path = join(scratch, 'context.gguf');
  await makeGguf(fairyTale, path);
  await assert.rejects(Engine.load(path, { contextLength: 1 << 20 }), {
    code: 'invalid-argument',
    message: /n_positions/,
  });
});

test('what is no GGUF file is named, and a cut one is truncated (B87, B89, B90)', async () => {
  const path = join(scratch, 'whole.gguf');
  await makeGguf(fairyTale, path, { type: 'q4_0' });
  const whole = await readFile(path);
  const failed = async bytes => {
    const error = await Engine.load(bytes).catch(thrown => thrown);
    assert.ok(error instanceof ModelError, String(error));
    return error;
  };
  assert.equal((await failed(whole.subarray(0, whole.length - 100))).code, 'truncated');
  assert.equal((await failed(whole.subarray(0, 1000))).code, 'truncated');
  const pointer = 'version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n';
  assert.match((await failed(Buffer.from(pointer))).message, /Git LFS/);
  assert.match((await failed(Buffer.from('<!doctype html><title>404</title>'))).message, /HTML/);
  const other = Buffer.from(whole);
  other.write('gpt3', other.indexOf('gpt2'));
  const error = await failed(other);
  assert.equal(error.code, 'unsupported');
  assert.match(error.message, /'gpt3'/);
});
