// A bundle of a bundler that emits no workers: the copy of the worker inside it, and when it is used.

import assert from 'node:assert/strict';
import { cp, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, afterEach, before, test } from 'node:test';
import { build } from 'esbuild';
import { launchChromium, openPage } from '../browser/support/chromium.mjs';
import { madeUpModel } from '../browser/support/models.mjs';
import { serve } from '../browser/support/static-server.mjs';
import { makeProject } from './support/packed-project.mjs';

const html = '<!doctype html><title>bundle</title><script type="module" src="./main.js"></script>';
const main = "import * as kvasm from 'kvasm'; globalThis.kvasm = kvasm;";
const headers = {
  'Content-Security-Policy':
    "default-src 'self'; script-src 'self' 'wasm-unsafe-eval'; worker-src 'self' blob:",
};
const open = [];
let browser;
let project;
let model;

before(async () => {
  [browser, project, model] = await Promise.all([
    launchChromium(),
    makeProject(),
    madeUpModel('tiny'),
  ]);
  await writeFile(join(project.folder, 'main.js'), main);
});

afterEach(async () => {
  for (const { close } of open.splice(0).reverse()) await close();
});

after(async () => {
  await browser?.close();
  await project?.remove();
});

/** A folder with the bundle. */
async function bundle(options = {}) {
  const { format = 'esm', splitting = false } = options;
  const outdir = join(project.folder, `${format}-${splitting}`);
  const { warnings } = await build({
    entryPoints: [join(project.folder, 'main.js')],
    bundle: true,
    outdir,
    logLevel: 'silent',
    ...options,
  });
  return { outdir, warnings };
}

/** A page with a script that puts the package on `globalThis`, and what the page has asked the host for. */
async function openPageIn(folder, site = {}) {
  const server = await serve({
    headers,
    ...site,
    folders: { ...site.folders, '/model/': model, '/': folder },
    texts: { '/index.html': html, ...site.texts },
  });
  open.push(server);
  const opened = await openPage(browser);
  open.push(opened);
  const requested = [];
  opened.page.on('request', request => requested.push(new URL(request.url()).pathname));
  await opened.page.goto(server.url);
  await opened.page.waitForFunction(() => globalThis.kvasm !== undefined);
  return { ...opened, requested };
}

/** Loads, generates and disposes in a page. */
function generate(page, options = {}) {
  return page.evaluate(async options => {
    try {
      const engine = await globalThis.kvasm.Engine.load('./model/', options);
      const { variant, variantReason, threads, threadsReason } = engine.info;
      const run = engine.generate([1, 2, 3], { maxTokens: 40, temperature: 0, stopTokens: [] });
      const { tokens } = await run.result();
      await engine.dispose();
      const ids = tokens.map(({ token }) => token);
      return { ids, variant, variantReason, threads, threadsReason };
    } catch ({ name, code, message }) {
      return { name, code, message };
    }
  }, options);
}

for (const options of [{ format: 'esm' }, { format: 'esm', splitting: true }, { format: 'iife' }]) {
  const name = `${options.format}${options.splitting ? ' with splitting' : ''}`;
  test(`an ${name} bundle generates what the package does without one`, async () => {
    const plain = join(project.folder, 'plain');
    await cp(join(project.installed, 'dist'), join(plain, 'kvasm'), { recursive: true });
    await writeFile(join(plain, 'main.js'), main.replace("'kvasm'", "'./kvasm/index.js'"));
    const asked = { variant: 'simd', threads: 1 };
    const { page } = await openPageIn(plain);
    const { ids } = await generate(page, asked);
    assert.equal(ids.length, 40);

    const { outdir, warnings } = await bundle(options);
    assert.deepEqual(warnings, []);
    const bundled = await openPageIn(outdir);
    const result = await generate(bundled.page);
    assert.deepEqual(result.ids, ids);
    assert.equal(`${result.variant} ${result.threads}`, 'simd 1');
    assert.match(result.variantReason, /bundle/);
    assert.match(result.threadsReason, /bundle.*workerUrl/);
    assert.deepEqual(bundled.failures, []);
    assert.ok(!bundled.requested.some(path => path.endsWith('.wasm')), `${bundled.requested}`);
  });
}

test('a workerUrl always counts, also one that leads nowhere', async () => {
  const { outdir } = await bundle();
  const folders = { '/dist/': join(project.installed, 'dist') };
  const { page, requested } = await openPageIn(outdir, { folders });
  const lost = await generate(page, { workerUrl: './nowhere/kvasm-worker.js' });
  assert.equal(lost.code, 'load-failed');
  assert.match(lost.message, /nowhere\/kvasm-worker\.js cannot be fetched \(HTTP status 404\)/);
  const { ids, variantReason } = await generate(page, { workerUrl: './dist/kvasm-worker.js' });
  assert.equal(ids.length, 40);
  assert.doesNotMatch(variantReason, /bundle/);
  assert.ok(requested.includes('/dist/kvasm-worker.js'));
});

test('a wasmUrl counts, and a variant that is not in the bundle is refused', async () => {
  const { outdir } = await bundle();
  const folders = { '/dist/': join(project.installed, 'dist') };
  const { page } = await openPageIn(outdir, { folders });
  const lost = await generate(page, { wasmUrl: './nowhere/' });
  assert.equal(lost.code, 'load-failed');
  assert.match(lost.message, /nowhere\/kvasm-simd\.wasm: cannot be fetched \(HTTP status 404\)/);
  assert.equal((await generate(page, { wasmUrl: './dist/wasm/' })).ids.length, 40);
  const refused = await generate(page, { variant: 'relaxed-simd' });
  assert.equal(refused.code, 'unsupported');
  assert.match(refused.message, /bundle.*workerUrl/);
});

test('a page where Blobs cannot be workers is told what to do', async () => {
  const { outdir } = await bundle();
  const folders = { '/dist/': join(project.installed, 'dist') };
  const { page } = await openPageIn(outdir, { folders, headers: {} });
  const { name, code, message } = await generate(page);
  assert.equal(`${name} ${code}`, 'ModelError load-failed');
  assert.match(message, /Content-Security-Policy without 'worker-src blob:'.*workerUrl/);
  const { ids } = await generate(page, { workerUrl: './dist/kvasm-worker.js' });
  assert.equal(ids.length, 40);
});

test('a host that answers with a page in place of the worker does no harm', async () => {
  const { outdir } = await bundle();
  const { page } = await openPageIn(outdir, { texts: { '/kvasm-worker.js': html } });
  assert.equal((await generate(page)).ids.length, 40);
});
