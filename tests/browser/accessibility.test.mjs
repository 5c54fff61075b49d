// The site as it is deployed: whether everybody can use it, as far as axe-core can tell, in each view and at each size.

import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { test } from 'node:test';
import { deploySite } from './support/deployed.mjs';
import { isolation } from './support/static-server.mjs';
import { openLesson, runBenchmark, runLesson, showAttention } from './support/views.mjs';

const lessons = ['why-cache', 'prefill-decode', 'window', 'prefix-hit', 'fork', 'smaller', 'end'];
const axe = await readFile(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const deployed = deploySite({ headers: isolation });

/** The serious and critical violations of what is shown now. */
async function violations(page) {
  await page.evaluate(axe);
  const found = await page.evaluate(async () => (await globalThis.axe.run()).violations);
  return found
    .filter(({ impact }) => impact === 'serious' || impact === 'critical')
    .map(({ id, nodes }) => `${id}: ${nodes.map(node => node.html.slice(0, 160)).join(' | ')}`);
}

/** Elements that stick out to the right of the page. */
function overflowing(page) {
  return page.evaluate(() =>
    [...document.querySelectorAll('body *')]
      .filter(element => !element.closest('.heat-map'))
      .filter(element => element.getBoundingClientRect().right > innerWidth + 0.5)
      .map(element => element.outerHTML.slice(0, 80)),
  );
}

for (const colorScheme of ['light', 'dark']) {
  for (const viewport of [
    { width: 390, height: 844 },
    { width: 1440, height: 900 },
  ]) {
    const options = { viewport, colorScheme, reducedMotion: 'reduce' };
    test(`everything is accessible and in place: ${colorScheme}, ${viewport.width} pixels wide`, async () => {
      await deployed.onPage(async (demo, page) => {
        const check = async state => {
          assert.deepEqual(await violations(page), [], state);
          assert.deepEqual(await overflowing(page), [], state);
        };
        await check('before a model is loaded');
        await page.click('#change-model');
        await page.click('#more-options summary');
        await check('with everything open');
        await demo.generate({ 'max-tokens': 60, seed: 11, temperature: 1, window: 24 });
        await page.locator('#output-completion .token').first().click();
        await check('after a run');
        for (const lesson of lessons) {
          await openLesson(page, lesson);
          await check(`lesson ${lesson}`);
        }
        await runLesson(page, 'why-cache', { 'Tokens to write': 32 });
        await check('after the race');
        await runLesson(page, 'end');
        await check('after the end of the table');
        await showAttention(page, { text: 'the quick brown fox', window: '4' });
        await check('attention');
        await runBenchmark(page);
        await check('benchmark');
      }, options);
    });
  }
}

test('the tabs are gone through by key', async () => {
  await deployed.onPage(async (_demo, page) => {
    await page.focus('#tab-playground');
    for (const view of ['lessons', 'attention', 'benchmark', 'playground']) {
      await page.keyboard.press('ArrowRight');
      assert.equal(await page.evaluate(() => document.activeElement.dataset.view), view);
      await page.locator(`#${view}`).waitFor();
      assert.equal(await page.locator('[role="tabpanel"]:visible').count(), 1);
    }
  });
});
