// A model of the real GPT-2's size, with random weights: half a gigabyte through fetch, and 200 tokens.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openBarePage } from './support/bare-page.mjs';
import { launchChromium } from './support/chromium.mjs';
import { madeUpModel } from './support/models.mjs';

const prompt = [7454, 2402, 257, 640, 11, 612, 373, 257, 3516];

test('a 124M model loads and generates 200 equal tokens with every strategy', async () => {
  const folder = await madeUpModel('124M');
  const browser = await launchChromium();
  try {
    const bare = await openBarePage(browser, folder);
    const { page } = bare;
    try {
      const { info, last } = await page.evaluate(async () => {
        let last;
        globalThis.engine = await globalThis.kvasm.Engine.load('./model/', {
          onProgress: progress => {
            last = progress;
          },
        });
        return { info: globalThis.engine.info, last };
      });
      assert.equal(info.config.nPositions, 1024);
      assert.equal(info.config.vocabSize, 50257);
      assert.equal(last.phase, 'ready');
      assert.equal(last.loaded, last.total);

      const runs = [];
      for (const cache of ['block', 'concat', 'none']) {
        const run = await page.evaluate(
          async ([prompt, options]) => {
            const result = await globalThis.engine.generate(prompt, options).result();
            return { tokens: [...result.tokens], kv: result.memory.kv };
          },
          [prompt, { maxTokens: 200, temperature: 0, stopTokens: [], cache }],
        );
        assert.equal(run.tokens.length, 200);
        assert.equal(run.kv.perToken, 2 * 12 * 12 * 64 * 4);
        const kept = cache === 'none' ? 0 : prompt.length + 199;
        assert.equal(run.kv.used, kept * run.kv.perToken);
        runs.push(run.tokens);
      }
      assert.deepEqual(runs[1], runs[0]);
      assert.deepEqual(runs[2], runs[0]);
      assert.deepEqual(bare.failures, []);
    } finally {
      await bare.close();
    }
  } finally {
    await browser.close();
  }
});
