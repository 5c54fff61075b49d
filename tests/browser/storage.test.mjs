// The package in Chromium, with a hub that is on another origin: what browsers keep of downloads, and what becomes of it.

import assert from 'node:assert/strict';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, afterEach, before, beforeEach, test } from 'node:test';
import { makeCheckpoint } from '../../scripts/fixtures/make-checkpoint.mjs';
import { startHub } from '../support/hub-server.mjs';
import { barePageScript } from './support/bare-page.mjs';
import { launchChromium, openPage } from './support/chromium.mjs';
import { DemoPage } from './support/demo-page.mjs';
import { repository } from './support/models.mjs';
import { serve } from './support/static-server.mjs';

const id = 'someone/model';
const weights = 'model.safetensors';
const names = ['config.json', 'vocab.json', 'merges.txt', weights];
const pieceBytes = 4 * 2 ** 20;
let folder;
let files;
let hub;
let server;
let browser;
let page;
let close;
let failures;

before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'kvasm-storage-'));
  // Of several pieces.
  await makeCheckpoint(folder, { shape: 'tiny', nLayer: 4, nEmbd: 256, nHead: 8 });
  const read = name => readFile(join(folder, name));
  files = Object.fromEntries(await Promise.all(names.map(async name => [name, await read(name)])));
  assert.ok(files[weights].length > 2.5 * pieceBytes);
  browser = await launchChromium();
});

after(async () => {
  await browser?.close();
  await rm(folder, { recursive: true, force: true });
});

beforeEach(async () => {
  hub = await startHub({ models: { [id]: { commit: 'c0ffee', files, lfs: [weights] } } });
  server = await serve({
    folders: { '/dist/': join(repository, 'dist') },
    texts: barePageScript,
    connect: `${hub.url} ${hub.cdnUrl}`,
  });
  ({ page, failures, close } = await openPage(browser));
  await open(page);
});

afterEach(async () => {
  await close();
  await server.close();
  await hub.close();
  assert.deepEqual(failures, []);
});

async function open(page) {
  await page.goto(server.url);
  await page.waitForFunction(() => globalThis.kvasm !== undefined);
}

/** Loads on the page, generates a little, and tells what was asked for meanwhile. */
async function load(options = {}, on = page) {
  const before = hub.requests.length;
  const seen = await on.evaluate(
    async ([id, options]) => {
      const warnings = [];
      const reports = [];
      const engine = await globalThis.kvasm.Engine.load(id, {
        ...options,
        onWarning: ({ code }) => warnings.push(code),
        onProgress: ({ overall }) => reports.push(overall),
      });
      const run = engine.generate([1, 2, 3], { maxTokens: 5, temperature: 0, stopTokens: [] });
      const { tokens } = await run.result();
      await engine.dispose();
      return { tokens: [...tokens], warnings, reports };
    },
    [id, { hubUrl: hub.url, ...options }],
  );
  for (const { loaded, total } of seen.reports) assert.ok(total === undefined || loaded <= total);
  const asked = hub.requests.slice(before).filter(({ method }) => method !== 'OPTIONS');
  return { ...seen, asked: asked.map(({ route, file }) => `${route} ${file}`) };
}

const list = storage =>
  page.evaluate(storage => globalThis.kvasm.modelCache(storage).list(), storage);

/** Begins a load, and gives it up when so many pieces have been kept. */
async function giveUpAfter(pieces, storage) {
  const cutAfter = Math.floor((pieces + 0.5) * pieceBytes);
  hub.fail(weights, { cutAfter, until: new Promise(() => {}) });
  const outcome = await page.evaluate(
    async ([id, hubUrl, storage, bytes]) => {
      const { Engine, modelCache } = globalThis.kvasm;
      const controller = new AbortController();
      const options = { hubUrl, storage, signal: controller.signal };
      const outcome = Engine.load(id, options).then(
        () => 'loaded',
        error => error.message,
      );
      const sizes = async () => (await modelCache(storage).list()).map(file => file.bytes);
      while (!(await sizes()).some(size => size >= bytes)) await new Promise(requestAnimationFrame);
      controller.abort(new Error('given up'));
      return outcome;
    },
    [id, hub.url, storage, pieces * pieceBytes],
  );
  assert.equal(outcome, 'given up');
}

for (const storage of ['opfs', 'cache-api']) {
  test(`'${storage}' has a model for the next load, and for the next visit`, async () => {
    const first = await load({ storage });
    assert.deepEqual(first.warnings, []);
    assert.ok(first.asked.includes(`cdn ${weights}`));
    const second = await load({ storage });
    assert.deepEqual(second.asked, ['api api']);
    assert.deepEqual(second.tokens, first.tokens);
    await open(page);
    assert.deepEqual((await load({ storage })).asked, ['api api']);
    const kept = await list(storage);
    assert.deepEqual(
      kept.map(({ model, file, size, complete }) => [model, file, size, complete]),
      [...names].sort().map(name => [id, name, files[name].length, true]),
    );
    const left = await page.evaluate(async storage => {
      const cache = globalThis.kvasm.modelCache(storage);
      const size = await cache.size();
      const freed = await cache.delete('someone/model');
      return [size - freed, await cache.size()];
    }, storage);
    assert.deepEqual(left, [0, 0]);
    assert.ok((await load({ storage })).asked.includes(`cdn ${weights}`));
  });

  test(`'${storage}' goes on with a load that was given up (B91)`, async () => {
    await giveUpAfter(2, storage);
    const [partial] = (await list(storage)).filter(({ file }) => file === weights);
    assert.equal(partial.complete, false);
    assert.ok(partial.bytes > 2 * pieceBytes && partial.bytes < 2.5 * pieceBytes);
    await open(page);
    const before = hub.requests.length;
    const { tokens, warnings } = await load({ storage });
    const ranges = hub.requests.slice(before).flatMap(({ headers }) => headers.range ?? []);
    assert.deepEqual([...new Set(ranges)], [`bytes=${2 * pieceBytes}-`]);
    assert.deepEqual(warnings, []);
    assert.deepEqual(tokens, (await load({ storage: 'off' })).tokens);
    assert.deepEqual((await load({ storage })).asked, ['api api']);
  });
}

test('a connection that is cut is gone on with, over origins', async () => {
  hub.fail(weights, { cutAfter: 5_000_000 });
  const { asked } = await load({ storage: 'off' });
  assert.equal(asked.filter(name => name === `cdn ${weights}`).length, 2);
  const range = hub.requests.map(({ headers }) => headers.range).find(text => text !== undefined);
  assert.match(range, /^bytes=\d{6,7}-$/);
});

test('a server that shows pages of other origins little will do (B94)', async () => {
  hub.exposes = false;
  const load = () =>
    page.evaluate(
      async ([url, storage]) => {
        const shares = [];
        const onProgress = ({ loaded, total }) => shares.push(total ? loaded / total : 0);
        const engine = await globalThis.kvasm.Engine.load(url, { storage, onProgress });
        await engine.dispose();
        return Math.max(...shares);
      },
      [hub.plainUrl(id), 'opfs'],
    );
  // Its length is that of the compressed bytes, and nothing says that they are compressed.
  hub.fail('config.json', { gzip: true });
  hub.fail('vocab.json', { gzip: true });
  hub.fail(weights, { cutAfter: 5_000_000 });
  assert.equal(await load(), 1);
  const resumed = hub.requests.filter(({ headers }) => headers.range !== undefined);
  assert.deepEqual([...new Set(resumed.map(({ status }) => status))], [206]);
  const before = hub.requests.length;
  assert.equal(await load(), 1);
  const methods = hub.requests.slice(before).map(({ method, file }) => `${method} ${file}`);
  assert.ok(!methods.includes(`GET ${weights}`), methods);
});

test('a damaged piece is found and fetched again', async () => {
  const { tokens } = await load({ storage: 'opfs' });
  const name = await page.evaluate(async () => {
    const root = await navigator.storage.getDirectory();
    const directory = await root.getDirectoryHandle('kvasm-models');
    for await (const [name, handle] of directory.entries()) {
      const { size } = await handle.getFile();
      if (!name.endsWith('.1') || size < 4e6) continue;
      const stream = await handle.createWritable({ keepExistingData: true });
      await stream.write({ type: 'write', position: 1000, data: new Uint8Array([1, 2, 3]) });
      await stream.close();
      return name;
    }
  });
  assert.match(name, /\.1$/);
  const healed = await load({ storage: 'opfs' });
  assert.deepEqual(healed.tokens, tokens);
  assert.ok(healed.asked.includes(`cdn ${weights}`));
  assert.deepEqual((await load({ storage: 'opfs' })).asked, ['api api']);
});

test('a page in place of the weights is refused, and not kept (B90)', async () => {
  const url = hub.plainUrl(id);
  const outcome = () =>
    page.evaluate(
      url =>
        globalThis.kvasm.Engine.load(url).then(
          engine => engine.dispose().then(() => 'loaded'),
          ({ code, message }) => `${code}: ${message}`,
        ),
      url,
    );
  const body = `<!doctype html>${' '.repeat(5000)}`;
  hub.fail(weights, { body, headers: { 'Content-Type': 'text/html' } }, { body });
  const { [weights]: index } = { [weights]: `${weights}.index.json` };
  assert.match(await outcome(), new RegExp(`^load-failed: .*HTML page.*${index}`));
  assert.match(await outcome(), /^load-failed: .*is an HTML page/);
  assert.equal(await outcome(), 'loaded');
});

test('storage without room costs a warning, not the load (B95)', async () => {
  const session = await page.context().newCDPSession(page);
  const origin = new URL(server.url).origin;
  const limit = { origin, quotaSize: 3_000_000 };
  await session.send('Storage.overrideQuotaForOrigin', limit);
  for (const storage of ['opfs', 'cache-api']) {
    const { tokens, warnings } = await load({ storage });
    assert.deepEqual(warnings, ['storage-full'], storage);
    assert.equal(tokens.length, 5);
    assert.ok((await list(storage)).every(({ file }) => file !== weights));
  }
});

test('pages that load the same model at once do not disturb each other', async () => {
  const other = await page.context().newPage();
  await open(other);
  const [one, two, three] = await Promise.all([load(), load({}, other), load()]);
  assert.deepEqual(two.tokens, one.tokens);
  assert.deepEqual(three.tokens, one.tokens);
  for (const { warnings } of [one, two, three]) assert.deepEqual(warnings, []);
  const { asked, tokens } = await load({}, other);
  assert.deepEqual(asked, ['api api']);
  assert.deepEqual(tokens, one.tokens);
  await other.close();
});

test('while the hub cannot be reached, what is kept will do', async () => {
  const { tokens } = await load();
  await page.context().route(`${hub.url}/**`, route => route.abort());
  assert.deepEqual((await load()).tokens, tokens);
});

test('workers go with their engines, ten times over (B113)', async () => {
  const demo = new DemoPage(page);
  for (let i = 0; i < 10; i++) {
    await load();
    await demo.workers(0);
  }
  const errors = await page.evaluate(
    async ([id, hubUrl]) => {
      const engine = await globalThis.kvasm.Engine.load(id, { hubUrl });
      await engine.dispose();
      await engine.dispose();
      return engine
        .generate('a')
        .result()
        .catch(({ name, code }) => [name, code]);
    },
    [id, hub.url],
  );
  assert.deepEqual(errors, ['EngineClosedError', 'disposed']);
  await demo.workers(0);
});

test('a worker that ends unseen rejects all that waits, and the next load works', async () => {
  const errors = page.evaluate(
    async ([id, hubUrl]) => {
      const engine = await globalThis.kvasm.Engine.load(id, { hubUrl });
      const run = engine.generate([1], { overflow: 'shift', stopTokens: [] });
      await run[Symbol.asyncIterator]().next();
      globalThis.running = true;
      const pending = [run.result()];
      const outcomes = await Promise.allSettled(pending);
      const late = await Promise.allSettled([engine.memory()]);
      return [...outcomes, ...late].map(({ reason }) => [reason?.name, reason?.code]);
    },
    [id, hub.url],
  );
  await page.waitForFunction(() => globalThis.running);
  const [worker] = page.workers();
  // The answer may not come any more.
  worker.evaluate(() => globalThis.close()).catch(() => {});
  const closed = ['EngineClosedError', 'crashed'];
  assert.deepEqual(await errors, [closed, closed]);
  assert.equal((await load()).tokens.length, 5);
});
