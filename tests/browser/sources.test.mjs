// The site as it is deployed: where models come from, and what is left when they go.

import assert from 'node:assert/strict';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { before, test } from 'node:test';
import { indexName, shardNames, writeShards } from '../support/shards.mjs';
import { patience } from './support/chromium.mjs';
import { deploySite } from './support/deployed.mjs';
import { madeUpModel } from './support/models.mjs';
import { serveSite } from './support/site.mjs';

const modelFiles = ['config.json', 'model.safetensors', 'vocab.json', 'merges.txt'];
const deployed = deploySite();
const { onPage } = deployed;
let folder;

before(async () => {
  folder = await madeUpModel('tiny');
});

async function loadFails(demo, page) {
  await page.click('#load');
  await page.waitForSelector('#model-error .error-sentence', { timeout: patience });
  await demo.state('empty');
  return await demo.text('model-error');
}

test('a wrong URL gives a sentence, leaves no worker, and what is right still loads', async () => {
  await onPage(async (demo, page) => {
    await demo.chooseSource('remote');
    await demo.set({ 'remote-id': new URL('no/such/model', deployed.server.url).href });
    const error = await loadFails(demo, page);
    assert.match(error, /^A file of the model could not be loaded\. Check the name/);
    assert.match(error, /config\.json.*404/);
    await demo.workers(0);
    await demo.chooseSource('tiny');
    await demo.load();
    assert.ok(await page.isHidden('#model-error'));
  });
});

test('a URL of a folder loads, and no URL at all is told', async () => {
  await onPage(async (demo, page) => {
    await demo.chooseSource('remote');
    assert.match(await loadFails(demo, page), /^Enter a hub id or the URL/);
    await demo.set({ 'remote-id': ' ./models/tiny ' });
    await demo.load();
    assert.ok(await page.isHidden('#noise-badge'), 'nothing is known about these weights');
  });
});

test('a hub id loads from the hub', async () => {
  const hub = 'https://huggingface.co/';
  const own = await serveSite(deployed.site.folder, { connect: hub });
  try {
    await onPage(
      async (demo, page) => {
        const asked = [];
        await page.context().route(`${hub}**`, async route => {
          const name = route.request().url().slice(hub.length);
          asked.push(name);
          const file = name.slice(name.lastIndexOf('/') + 1);
          const headers = { 'Access-Control-Allow-Origin': '*' };
          if (!modelFiles.includes(file)) await route.fulfill({ status: 404, headers });
          else await route.fulfill({ body: await readFile(join(folder, file)), headers });
        });
        await demo.chooseSource('remote');
        await demo.set({ 'remote-id': 'someone/a-model' });
        await demo.load();
        assert.match(await demo.text('model-status'), /^Ready: someone\/a-model\./);
        assert.ok(asked.includes('someone/a-model/resolve/main/model.safetensors'));
      },
      { url: own.url },
    );
  } finally {
    await own.close();
  }
});

test('local files load, also one after the other', async () => {
  await onPage(async (demo, page) => {
    const expected = await demo.generate({ 'max-tokens': 40, seed: 3 });
    await demo.chooseSource('files');
    await page.setInputFiles('#model-files', join(folder, 'config.json'));
    assert.match(await demo.text('files-summary'), /Still needed: model\.safetensors, tokenizer/);
    await page.click('#load');
    assert.match(await demo.text('model-error'), /^Choose the model's files first: model\.saf/);
    const others = modelFiles.slice(1).map(name => join(folder, name));
    await page.setInputFiles('#model-files', others);
    assert.doesNotMatch(await demo.text('files-summary'), /Still needed/);
    await demo.load();
    assert.match(await demo.text('model-status'), /^Ready: Your files\./);
    assert.equal(await demo.generate({ 'max-tokens': 40, seed: 3 }), expected);
  });
});

test('dropped files load', async () => {
  await onPage(async (demo, page) => {
    await page.evaluate(async names => {
      const transfer = new DataTransfer();
      for (const name of [...names, 'README.md']) {
        const response = await fetch(name === 'README.md' ? './' : `./models/tiny/${name}`);
        transfer.items.add(new File([await response.blob()], name));
      }
      const event = { dataTransfer: transfer, bubbles: true, cancelable: true };
      document.body.dispatchEvent(new DragEvent('drop', event));
    }, modelFiles);
    await page.waitForFunction(() =>
      /Not used: README\.md/.test(document.getElementById('files-summary').textContent),
    );
    assert.ok(await page.isChecked('#source-files'));
    await demo.load();
  });
});

test('damaged weights give a sentence', async () => {
  await onPage(async (demo, page) => {
    const file = async name => ({
      name,
      mimeType: '',
      buffer: await readFile(join(folder, name)),
    });
    const files = await Promise.all(modelFiles.map(file));
    files[1].buffer = files[1].buffer.subarray(0, 100_000);
    await demo.chooseSource('files');
    await page.setInputFiles('#model-files', files);
    assert.match(await loadFails(demo, page), /^The weights end too early/);
    await demo.workers(0);
  });
});

test('a load shows how far it is, and can be aborted', async () => {
  // Half a minute for the weights, so that nobody misses what lies between their beginning and their end.
  const pace = { bytesPerSecond: 8000 };
  const slow = await serveSite(deployed.site.folder, { pace });
  try {
    await onPage(
      async (demo, page) => {
        await page.click('#load');
        await page.waitForFunction(
          () => /^[1-9]\d? %$/.test(document.getElementById('load-percent').textContent),
          undefined,
          { timeout: patience },
        );
        assert.match(await demo.text('load-bytes'), /^Weights: .+ of 198 KiB/);
        await page.click('#abort-load');
        await demo.state('empty');
        assert.match(await demo.text('model-status'), /aborted/);
        assert.ok(await page.isHidden('#model-error'));
        await demo.workers(0);
        pace.bytesPerSecond = Infinity;
        await demo.load();
        assert.equal(await demo.text('load-percent'), '100 %');
      },
      { url: slow.url },
    );
  } finally {
    await slow.close();
  }
});

test('the bar of weights in several files goes up once', async () => {
  const shards = await mkdtemp(join(tmpdir(), 'kvasm-shards-'));
  try {
    await writeShards(join(folder, 'model.safetensors'), shards);
    const files = [
      ...modelFiles.filter(name => name !== 'model.safetensors').map(name => join(folder, name)),
      ...[indexName, ...shardNames].map(name => join(shards, name)),
    ];
    await onPage(async (demo, page) => {
      await page.evaluate(() => {
        const percent = document.getElementById('load-percent');
        globalThis.shares = [];
        new MutationObserver(() => globalThis.shares.push(percent.textContent)).observe(percent, {
          childList: true,
        });
      });
      await demo.chooseSource('files');
      await page.setInputFiles('#model-files', files);
      await demo.load();
      const shares = (await page.evaluate(() => globalThis.shares)).map(text => parseInt(text, 10));
      const known = shares.filter(share => !Number.isNaN(share));
      assert.deepEqual(
        known,
        [...known].sort((a, b) => a - b),
      );
      assert.equal(known.at(-1), 100);
      // Where the first of the two ends.
      assert.ok(
        known.some(share => share > 40 && share < 90),
        known.join(),
      );
    });
  } finally {
    await rm(shards, { recursive: true });
  }
});

test('one worker lives at a time, and none after unloading', async () => {
  await onPage(async (demo, page) => {
    await demo.workers(0);
    await demo.load();
    await demo.workers(1);
    await demo.load();
    await demo.workers(1);
    await demo.generate({ 'max-tokens': 10 });
    await page.click('#unload');
    await demo.state('empty');
    await demo.workers(0);
    assert.deepEqual(await demo.cache(), {
      used: undefined,
      tokens: undefined,
      perToken: undefined,
      reserved: undefined,
    });
    await demo.generate({ 'max-tokens': 10 });
    await demo.workers(1);
  });
});

test('a page without a bundled model says so', async () => {
  const bare = await serveSite(deployed.site.folder, {
    texts: { '/models.json': '{"models":[]}' },
  });
  try {
    await onPage(
      async (_demo, page) => {
        assert.ok(await page.isVisible('#no-model-note'));
        assert.ok(await page.isChecked('#source-remote'));
      },
      { url: bare.url },
    );
  } finally {
    await bare.close();
  }
});
