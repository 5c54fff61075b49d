// Threads and variants in Chromium, under a strict Content-Security-Policy: the same tokens with any number of threads,
// and one thread where the page is not cross-origin isolated.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { setTimeout } from 'node:timers/promises';
import { openBarePage } from './support/bare-page.mjs';
import { launchChromium, patience } from './support/chromium.mjs';
import { madeUpModel } from './support/models.mjs';
import { isolation } from './support/static-server.mjs';

let browser;
let model;

before(async () => {
  [browser, model] = await Promise.all([launchChromium(), madeUpModel('tiny')]);
});

after(() => browser?.close());

/** Opens a page for a test, with what it warned of. */
async function open(t, headers) {
  const bare = await openBarePage(browser, model, {}, headers);
  t.after(() => bare.close());
  return bare;
}

/** Loads, generates with the log-probability of each token, and disposes. */
function run(page, loadOptions, generateOptions = {}) {
  return page.evaluate(
    async ([loadOptions, generateOptions]) => {
      const warnings = [];
      const engine = await globalThis.kvasm.Engine.load('./model/', {
        ...loadOptions,
        onWarning: warning => warnings.push(warning),
      });
      const options = { maxTokens: 30, temperature: 0, stopTokens: [], logprobs: 3 };
      const drawn = [];
      for await (const chunk of engine.generate([1, 2, 3, 4, 5], {
        ...options,
        ...generateOptions,
      })) {
        drawn.push([chunk.token, chunk.logprob, JSON.stringify(chunk.topLogprobs)]);
      }
      await engine.dispose();
      const { variant, variantReason, threads, threadsReason } = engine.info;
      return { drawn, warnings, variant, variantReason, threads, threadsReason };
    },
    [loadOptions, generateOptions],
  );
}

test('without isolation, 4 threads are 1, with one warning and the same tokens (B103)', async t => {
  const { page, failures } = await open(t, {});
  const one = await run(page, { threads: 1 });
  const four = await run(page, { threads: 4 });
  assert.equal(four.threads, 1);
  assert.equal(four.warnings.length, 1);
  assert.equal(four.warnings[0].code, 'fewer-threads');
  assert.match(four.warnings[0].message, /not cross-origin isolated/);
  assert.deepEqual(four.drawn, one.drawn);
  const auto = await run(page, {});
  assert.deepEqual([auto.threads, auto.warnings], [1, []]);
  assert.match(auto.threadsReason, /not cross-origin isolated/);
  assert.deepEqual(failures, []);
});

for (const variant of ['simd', 'relaxed-simd']) {
  test(`${variant}: any number of threads gives the same bits`, async t => {
    const { page, failures } = await open(t, isolation);
    const one = await run(page, { variant, threads: 1 });
    assert.deepEqual([one.variant, one.threads], [variant, 1]);
    for (const threads of [2, 3, 16]) {
      const { drawn, warnings, ...info } = await run(page, { variant, threads });
      assert.deepEqual([info.variant, info.threads, warnings], [variant, threads, []]);
      assert.deepEqual(drawn, one.drawn);
    }
    assert.deepEqual(failures, []);
  });

  test(`${variant}: a cache gives the bits that none gives`, async t => {
    const { page } = await open(t, isolation);
    const cached = await run(page, { variant, threads: 2 });
    const uncached = await run(page, { variant, threads: 2 }, { cache: 'none' });
    assert.deepEqual(cached.drawn, uncached.drawn);
  });
}

test('relaxed SIMD is what Chromium gets by default', async t => {
  const { page } = await open(t, isolation);
  const { variant, variantReason } = await run(page, { threads: 1 });
  assert.equal(variant, 'relaxed-simd');
  assert.match(variantReason, /works/);
});

test('an engine with threads leaves no worker behind (B113)', async t => {
  const { page } = await open(t, isolation);
  for (let i = 0; i < 3; i++) await run(page, { threads: 3 });
  // The browser tells later.
  const deadline = Date.now() + patience;
  while (page.workers().length > 0 && Date.now() < deadline) await setTimeout(50);
  assert.deepEqual(page.workers(), []);
});
