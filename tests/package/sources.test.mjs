// The built package in Node, on the real WebAssembly: whatever a model comes in, it is the same model; and a worker that
// dies takes nobody else with it.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, afterEach, before, test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { makeCheckpoint } from '../../scripts/fixtures/make-checkpoint.mjs';
import { makeGguf } from '../../scripts/fixtures/make-gguf.mjs';
import { startHub } from '../support/hub-server.mjs';
import { indexName, shardNames, writeShards } from '../support/shards.mjs';

const { Engine, modelCache } = await import('../../dist/node.js');
const names = ['config.json', 'vocab.json', 'merges.txt', 'model.safetensors'];
const id = 'someone/tiny';
const run = promisify(execFile);
let folder;
let whole;
let sharded;
let expected;
let hub;

before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'kvasm-sources-'));
  whole = join(folder, 'whole');
  sharded = join(folder, 'sharded');
  await mkdir(whole);
  await mkdir(sharded);
  await makeCheckpoint(whole, { shape: 'tiny' });
  for (const name of names.slice(0, 3)) {
    await writeFile(join(sharded, name), await readFile(join(whole, name)));
  }
  await writeShards(join(whole, 'model.safetensors'), sharded);
  expected = await tokensOf(whole);
});

after(() => rm(folder, { recursive: true, force: true }));
afterEach(() => hub?.close());

async function tokensOf(source, options) {
  const engine = await Engine.load(source, options);
  try {
    const run = engine.generate('Once upon', { maxTokens: 12, temperature: 0, stopTokens: [] });
    return [...(await run.result()).tokens];
  } finally {
    await engine.dispose();
  }
}

async function filesIn(directory, more = []) {
  const all = [
    ...names.filter(name => directory === whole || name !== 'model.safetensors'),
    ...more,
  ];
  return Object.fromEntries(
    await Promise.all(all.map(async name => [name, await readFile(join(directory, name))])),
  );
}

test('files may be bytes, blobs, responses, streams, lists', async () => {
  const files = await filesIn(whole);
  const each = make => Object.fromEntries(names.map(name => [name, make(files[name], name)]));
  const pieces = bytes =>
    new ReadableStream({
      start(controller) {
        for (let at = 0; at < bytes.length; at += 999) {
          controller.enqueue(new Uint8Array(bytes.subarray(at, at + 999)));
        }
        controller.close();
      },
    });
  const sources = {
    arrays: each(bytes => new Uint8Array(bytes)),
    buffers: each(bytes => new Uint8Array(bytes).buffer),
    blobs: each(bytes => new Blob([bytes])),
    responses: each(bytes => new Response(bytes)),
    streams: each(pieces),
    list: names.map(name => new File([files[name]], name)),
    paths: each((_, name) => join(whole, name)),
    weights: join(whole, 'model.safetensors'),
    url: pathToFileURL(whole),
  };
  for (const [kind, source] of Object.entries(sources)) {
    assert.deepEqual(await tokensOf(source), expected, kind);
  }
});

test('a stream that fails or ends early is a typed error', async () => {
  const files = await filesIn(whole);
  const failing = new ReadableStream({
    pull(controller) {
      controller.error(new Error('the cable is out'));
    },
  });
  await assert.rejects(Engine.load({ ...files, 'model.safetensors': failing }), {
    code: 'load-failed',
    message: /model\.safetensors: reading stopped .*the cable is out/,
  });
  const short = new Response(files['model.safetensors'].subarray(0, -1));
  await assert.rejects(Engine.load({ ...files, 'model.safetensors': short }), {
    code: 'truncated',
  });
});

test('shards are one model, from a directory, a hub, a folder, a list', async () => {
  const files = await filesIn(sharded, [indexName, ...shardNames]);
  hub = await startHub({ models: { [id]: { commit: 'c0ffee', files, lfs: shardNames } } });
  const sum = Object.values(files).reduce((total, file) => total + file.length, 0);
  for (const source of [sharded, join(sharded, indexName), files, id, hub.plainUrl(id)]) {
    const totals = new Set();
    const onProgress = ({ overall }) => totals.add(overall.total);
    assert.deepEqual(await tokensOf(source, { hubUrl: hub.url, onProgress }), expected);
    totals.delete(undefined);
    // Told right, or not at all.
    assert.deepEqual([...totals], [sum]);
  }
});

test('a GGUF file needs no other, wherever it is from', async () => {
  const path = join(folder, 'tiny.f32.gguf');
  await makeGguf(whole, path, { type: 'f32' });
  const bytes = await readFile(path);
  const model = { commit: 'c0ffee', files: { 'tiny.f32.gguf': bytes }, lfs: ['tiny.f32.gguf'] };
  const two = { ...model, files: { ...model.files, 'tiny.q4.gguf': 'not this one' } };
  hub = await startHub({ models: { [id]: model, 'someone/two': two } });
  const sources = {
    path,
    bytes: new Uint8Array(bytes),
    blob: new Blob([bytes]),
    list: [new File([bytes], 'my.gguf')],
    response: new Response(bytes),
    stream: new Blob([bytes]).stream(),
    hub: id,
    url: `${hub.plainUrl(id)}/tiny.f32.gguf`,
    fetched: await fetch(`${hub.plainUrl(id)}/tiny.f32.gguf`),
  };
  const options = { hubUrl: hub.url };
  for (const [kind, source] of Object.entries(sources)) {
    assert.deepEqual(await tokensOf(source, options), expected, kind);
  }
  const several = { code: 'load-failed', message: /choose with the option file: tiny\.f32\.gguf/ };
  await assert.rejects(Engine.load('someone/two', options), several);
  const file = 'tiny.f32.gguf';
  assert.deepEqual(await tokensOf('someone/two', { ...options, file }), expected);
  const asked = new Set(hub.requests.map(({ file }) => file));
  assert.deepEqual([...asked].sort(), ['api', 'tiny.f32.gguf']);
});

test('a shard that is not there is named (B88)', async () => {
  const files = await filesIn(sharded, [indexName, shardNames[0]]);
  const missing = /model-00002-of-00002\.safetensors: is not there .*index\.json names it/;
  await assert.rejects(Engine.load(files), { code: 'load-failed', message: missing });
  hub = await startHub({ models: { [id]: { commit: 'c0ffee', files } } });
  for (const source of [id, hub.plainUrl(id)]) {
    const loading = Engine.load(source, { hubUrl: hub.url });
    await assert.rejects(loading, { code: 'load-failed', message: missing });
  }
});

test('a tensor that the index omits is refused where the model needs it (B88)', async () => {
  const files = await filesIn(sharded, [indexName, ...shardNames]);
  const index = JSON.parse(files[indexName]);
  const omitted = Object.keys(index.weight_map).find(name => name.endsWith('c_fc.weight'));
  delete index.weight_map[omitted];
  const changed = { ...files, [indexName]: new Blob([JSON.stringify(index)]) };
  await assert.rejects(Engine.load(changed), error => {
    assert.equal(error.code, 'invalid-model');
    assert.ok(error.message.includes(omitted.replace('transformer.', '')), error.message);
    return true;
  });
});

test('what is wrong with a file is an Error with a code and a sentence (B107)', async () => {
  const files = await filesIn(whole);
  const magic = Buffer.from(files['model.safetensors']);
  magic.fill(0xff, 0, 8);
  await assert.rejects(Engine.load({ ...files, 'model.safetensors': magic }), error => {
    assert.ok(error instanceof Error);
    assert.equal(error.name, 'ModelError');
    assert.equal(error.code, 'invalid-model');
    assert.match(error.message, /model\.safetensors: .{10}/);
    return true;
  });
});

test('a model of the hub is kept where it is asked for, resumed (B91), and checked', async () => {
  const files = await filesIn(whole);
  const lfs = ['model.safetensors'];
  hub = await startHub({ models: { [id]: { commit: 'c0ffee', files, lfs } } });
  const storage = { directory: join(folder, 'kept') };
  const options = { hubUrl: hub.url, storage };
  hub.fail('model.safetensors', { cutAfter: 90_000 });
  assert.deepEqual(await tokensOf(id, options), expected);
  const ranges = hub.requests.flatMap(({ headers }) => headers.range ?? []);
  // What has arrived when the connection is reset may be less than what was sent.
  assert.ok(ranges.length > 0 && ranges.every(range => /^bytes=[1-9]\d{4}-$/.test(range)), ranges);
  const kept = await modelCache(storage).list();
  assert.deepEqual(
    kept.map(({ file, complete }) => [file, complete]),
    [...names].sort().map(name => [name, true]),
  );
  hub.requests.length = 0;
  assert.deepEqual(await tokensOf(id, options), expected);
  assert.deepEqual(
    hub.requests.map(({ route }) => route),
    ['api'],
  );
});

test('the command line loads from the hub, and lists and deletes what it keeps', async () => {
  const files = await filesIn(whole);
  hub = await startHub({ models: { [id]: { commit: 'c0ffee', files } }, token: 'secret' });
  const main = new URL('../../dist/cli/main.js', import.meta.url).pathname;
  const storage = ['--storage', join(folder, 'kept by the command')];
  const kvasm = async (...args) => {
    const env = { ...process.env, HF_ENDPOINT: hub.url, HF_TOKEN: 'secret' };
    return (await run(process.execPath, [main, ...args, ...storage], { env })).stdout;
  };
  const line = ['generate', '--model', `${id}@main`, '--prompt', 'Once', '--max-tokens', '3'];
  const text = await kvasm(...line, '--seed', '1');
  assert.match(text, /\n$/);
  assert.equal(await kvasm(...line, '--seed', '1'), text);
  assert.equal(hub.requests.filter(({ file }) => file === 'model.safetensors').length, 1);
  assert.match(await kvasm('cache', 'ls'), /202\.\d kB {2}whole {4}someone\/tiny {2}model\.safe/);
  assert.match(await kvasm('cache', 'rm', id), /kB freed/);
  assert.equal(await kvasm('cache', 'ls'), '      0 B  in all\n');
});

test('a worker that dies rejects all that waits, and the next load works', async () => {
  const script = join(folder, 'mortal-worker.mjs');
  await writeFile(
    script,
    `import { parentPort } from 'node:worker_threads';
     import ${JSON.stringify(new URL('../../dist/worker-node.js', import.meta.url).href)};
     parentPort.on('message', ({ type }) => type === 'cacheView' && process.exit(7));`,
  );
  const engine = await Engine.load(whole, { workerUrl: pathToFileURL(script) });
  const run = engine.generate('Once', { overflow: 'shift', stopTokens: [] });
  const iterator = run[Symbol.asyncIterator]();
  await iterator.next();
  const result = run.result();
  // It may still be answered.
  engine.cacheView().catch(() => {});
  await assert.rejects(result, {
    name: 'EngineClosedError',
    code: 'crashed',
    message: /exited with code 7/,
  });
  await assert.rejects(engine.generate('a').result(), { code: 'crashed' });
  await engine.dispose();
  assert.deepEqual(await tokensOf(whole), expected);
});
