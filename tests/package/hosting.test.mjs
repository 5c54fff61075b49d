// Where the package's files may lie, and what is said when they cannot be used from there.

import assert from 'node:assert/strict';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { after, afterEach, before, test } from 'node:test';
import { launchChromium, openPage } from '../browser/support/chromium.mjs';
import { madeUpModel } from '../browser/support/models.mjs';
import { isolation, serve } from '../browser/support/static-server.mjs';
import { makeProject } from './support/packed-project.mjs';

const html = '<!doctype html><title>host</title><script type="module" src="./main.js"></script>';
let browser;
let project;
let dist;
let model;
const open = [];

before(async () => {
  [browser, project, model] = await Promise.all([
    launchChromium(),
    makeProject(),
    madeUpModel('tiny'),
  ]);
  dist = join(project.installed, 'dist');
});

afterEach(async () => {
  for (const { close } of open.splice(0).reverse()) await close();
});

after(async () => {
  await browser?.close();
  await project?.remove();
});

async function host(site) {
  const server = await serve(site);
  open.push(server);
  return server;
}

/** A page that has imported the package from an address. */
async function openPageWith(packageUrl, site) {
  const main = `import * as kvasm from '${packageUrl}'; globalThis.kvasm = kvasm;`;
  const texts = { '/index.html': html, '/main.js': main, ...site.texts };
  const folders = { ...site.folders, '/model/': model };
  const { url } = await host({ ...site, folders, texts });
  const opened = await openPage(browser);
  open.push(opened);
  await opened.page.goto(url);
  await opened.page.waitForFunction(() => globalThis.kvasm !== undefined);
  return opened;
}

/** Loads, generates and disposes in a page. */
function generate(page, options = {}) {
  return page.evaluate(async options => {
    try {
      const engine = await globalThis.kvasm.Engine.load('./model/', options);
      const { tokens } = await engine.generate([1, 2], { maxTokens: 5, stopTokens: [] }).result();
      await engine.dispose();
      return { tokens: tokens.length };
    } catch ({ name, code, message }) {
      return { name, code, message };
    }
  }, options);
}

/** A host of nothing but the package, as CDNs are: of another origin, and open to all. */
function cdn(headers = { 'Access-Control-Allow-Origin': '*' }) {
  return host({ folders: { '/npm/kvasm@0.1.0/dist/': dist }, headers });
}

function policyFor(origin) {
  const policy = `default-src 'self'; script-src 'self' ${origin} 'wasm-unsafe-eval'; worker-src blob: ${origin}; connect-src 'self' ${origin}`;
  return { 'Content-Security-Policy': policy };
}

test('the package loads from a CDN: its worker is of another origin than the page', async () => {
  const { url } = await cdn();
  const headers = policyFor(new URL(url).origin);
  const opened = await openPageWith(`${url}npm/kvasm@0.1.0/dist/index.js`, { headers });
  assert.deepEqual(await generate(opened.page), { tokens: 5 });
  assert.deepEqual(opened.failures, []);
});

test('workerUrl may be of another origin, and wasmUrl too', async () => {
  const { url } = await cdn();
  const folders = { '/dist/': dist };
  const headers = policyFor(new URL(url).origin);
  const { page } = await openPageWith('./dist/index.js', { folders, headers });
  const workerUrl = `${url}npm/kvasm@0.1.0/dist/kvasm-worker.js`;
  assert.deepEqual(await generate(page, { workerUrl }), { tokens: 5 });
  const wasmUrl = `${url}npm/kvasm@0.1.0/dist/wasm/kvasm-simd.wasm`;
  assert.deepEqual(await generate(page, { workerUrl, wasmUrl }), { tokens: 5 });
});

test('a script that cannot be had is a load error that says why (B111)', async () => {
  const folders = { '/dist/': dist };
  const texts = { '/plain/worker.mjs': 'export {};' };
  const types = { '.mjs': 'text/plain' };
  const { page } = await openPageWith('./dist/index.js', { folders, texts, types });
  const cases = [
    ['./plain/worker.mjs', /worker\.mjs is served as text\/plain, and browsers run modules as/],
    ['./nowhere/worker.js', /nowhere\/worker\.js cannot be fetched \(HTTP status 404\)/],
  ];
  for (const [workerUrl, reason] of cases) {
    const { name, code, message } = await generate(page, { workerUrl });
    assert.equal(`${name} ${code}`, 'ModelError load-failed');
    assert.match(message, reason);
  }
  assert.deepEqual(await generate(page), { tokens: 5 });
});

test('another origin without CORS headers, and a policy without blob:, are load errors', async () => {
  const { url } = await cdn({});
  const folders = { '/dist/': dist };
  const workerUrl = `${url}npm/kvasm@0.1.0/dist/kvasm-worker.js`;
  const headers = policyFor(new URL(url).origin);
  const without = await openPageWith('./dist/index.js', { folders, headers });
  const refused = await generate(without.page, { workerUrl });
  assert.equal(refused.code, 'load-failed');
  assert.match(refused.message, /kvasm-worker\.js cannot be fetched/);
  const strict = await openPageWith('./dist/index.js', { folders });
  assert.equal((await generate(strict.page, { workerUrl })).code, 'load-failed');
});

test('a .wasm that is none, or is not there, is a load error with its address', async () => {
  const folders = { '/dist/': dist };
  const names = (await readdir(join(dist, 'wasm'))).filter(name => name.endsWith('.wasm'));
  const texts = Object.fromEntries(names.map(name => [`/none/${name}`, '<!doctype html>']));
  const { page } = await openPageWith('./dist/index.js', { folders, texts });
  for (const [wasmUrl, reason] of [
    ['./none/kvasm-simd.wasm', /none\/kvasm-[a-z-]+\.wasm could not be compiled/],
    [
      './nowhere/kvasm-simd.wasm',
      /nowhere\/kvasm-[a-z-]+\.wasm: cannot be fetched \(HTTP status 404\)/,
    ],
  ]) {
    const { code, message } = await generate(page, { wasmUrl });
    assert.equal(code, 'load-failed');
    assert.match(message, reason);
  }
});

/** Lets a Worker have 600 MB, and no memory that may grow beyond, as phones do. */
const smallMemory = `
  const limit = 600_000_000 / 65_536;
  const { Memory } = WebAssembly;
  const { grow } = Memory.prototype;
  WebAssembly.Memory = class extends Memory {
    constructor(descriptor) {
      if ((descriptor.maximum ?? descriptor.initial) > limit) {
        throw new RangeError('could not allocate memory');
      }
      super(descriptor);
    }
  };
  Memory.prototype.grow = function (pages) {
    if (this.buffer.byteLength / 65_536 + pages > limit) throw new RangeError('no more memory');
    return grow.call(this, pages);
  };
`;

for (const [kind, headers] of [
  ['a page', {}],
  ['an isolated page', isolation],
]) {
  test(`${kind} with little memory loads what fits, and says what does not (B112)`, async () => {
    const texts = {
      '/small-memory.js': smallMemory,
      '/small-worker.js': "import './small-memory.js'; import './dist/kvasm-worker.js';",
    };
    const { page } = await openPageWith('./dist/index.js', {
      folders: { '/dist/': dist },
      texts,
      headers,
    });
    const workerUrl = './small-worker.js';
    assert.deepEqual(await generate(page, { workerUrl, kvBytes: 50_000_000 }), { tokens: 5 });
    const { name, code } = await generate(page, { workerUrl, kvBytes: 900_000_000 });
    assert.equal(`${name} ${code}`, 'GenerationError out-of-memory');
    assert.deepEqual(await generate(page, { workerUrl }), { tokens: 5 });
  });
}
