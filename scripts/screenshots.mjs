#!/usr/bin/env node

// Takes the README's pictures of the page, with the bundled model: docs/*.png. Needs `npm run build`.

import { fileURLToPath } from 'node:url';
import { launchChromium, openPage } from '../tests/browser/support/chromium.mjs';
import { DemoPage } from '../tests/browser/support/demo-page.mjs';
import { buildSite } from '../tests/browser/support/site.mjs';
import { isolation, serve } from '../tests/browser/support/static-server.mjs';
import { runLesson, showAttention } from '../tests/browser/support/views.mjs';

const docs = new URL('../docs/', import.meta.url);
const desktop = { width: 1440, height: 1000 };
const phone = { width: 390, height: 844 };
// Marks of what has just happened are gone by then.
const rest = 1500;

/** By the name of the picture: on which screen, and what is done before. */
const pictures = {
  page: {
    options: { viewport: desktop },
    async prepare(demo, page) {
      await demo.generate({ prompt: 'Once upon a time', 'max-tokens': 90, seed: 2 });
      await demo.generate({ prompt: 'Once upon a time there was', 'max-tokens': 100, seed: 3 });
      await page.locator('#output-completion .token').nth(12).hover();
    },
  },
  'page-dark': {
    options: { viewport: desktop, colorScheme: 'dark' },
    async prepare(demo, page) {
      await demo.generate({ 'max-tokens': 110, seed: 2, window: 48 });
      await page.locator('#output-completion .token').nth(12).hover();
    },
  },
  lesson: {
    options: { viewport: desktop },
    prepare: (_demo, page) => runLesson(page, 'fork'),
  },
  attention: {
    options: { viewport: { width: 1440, height: 1200 } },
    async prepare(_demo, page) {
      const text =
        'Once upon a time there was a king who had a daughter, and the king said to his daughter';
      await showAttention(page, { text, window: '8' });
    },
  },
  phone: {
    options: { viewport: phone, deviceScaleFactor: 2 },
    async prepare(demo, page) {
      await demo.generate({ 'max-tokens': 120, seed: 2 });
      await page.locator('.cache-panel').scrollIntoViewIfNeeded();
      await page.locator('.cache-panel').evaluate(element => element.scrollIntoView());
    },
  },
};

const site = await buildSite();
const server = await serve({ folders: { '/': site.folder }, headers: isolation });
const browser = await launchChromium();
try {
  for (const [name, { options, prepare }] of Object.entries(pictures)) {
    const { page, close } = await openPage(browser, { ...options, reducedMotion: 'reduce' });
    const demo = new DemoPage(page);
    await demo.open(server.url);
    await prepare(demo, page);
    await page.waitForTimeout(rest);
    const path = fileURLToPath(new URL(`${name}.png`, docs));
    await page.screenshot({ path });
    console.log(path);
    await close();
  }
} finally {
  await browser.close();
  await server.close();
  await site.remove();
}
