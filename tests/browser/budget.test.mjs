// The site as it is deployed: what has to come before there is something to see.

import assert from 'node:assert/strict';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { gzipSync } from 'node:zlib';
import { launchChromium, openPage } from './support/chromium.mjs';
import { buildSite, serveSite } from './support/site.mjs';
import { isolation } from './support/static-server.mjs';

const budget = 120_000;
let site;
let browser;

before(async () => {
  site = await buildSite();
  browser = await launchChromium();
});

after(async () => {
  await browser?.close();
  await site?.remove();
});

test('the JavaScript of the page takes less than 120 KB, compressed and without the package', async () => {
  const folder = join(site.folder, 'assets');
  const scripts = (await readdir(folder)).filter(name => name.endsWith('.js'));
  // The package is in a chunk of its own, in the worker, and in a chunk with another one that no page of this bundler gets.
  const own = scripts.filter(name => !/^(kvasm|embedded-worker)-/.test(name));
  assert.ok(own.length > 0 && own.length < scripts.length, scripts.join());
  let bytes = 0;
  for (const name of own) bytes += gzipSync(await readFile(join(folder, name))).length;
  assert.ok(bytes < budget, `${bytes} bytes`);
});

test('the page is painted before any model, and loads none by itself', async () => {
  const server = await serveSite(site.folder, { headers: isolation });
  const { page, close } = await openPage(browser);
  try {
    const requested = [];
    page.on('request', request => requested.push(new URL(request.url()).pathname));
    // A host that never answers about models.
    await page.route('**/models.json', () => {});
    await page.goto(server.url);
    await page.waitForFunction(
      () => performance.getEntriesByName('first-contentful-paint').length > 0,
    );
    assert.ok(await page.isVisible('h1'));
    assert.ok(await page.isVisible('#prompt'));
    await page.unroute('**/models.json');
    await page.reload();
    await page.waitForSelector('body[data-state="empty"]');
    assert.deepEqual(
      requested.filter(path => /models\/|\.wasm$/.test(path)),
      [],
    );
  } finally {
    await close();
    await server.close();
  }
});
