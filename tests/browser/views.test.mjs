// The site as it is deployed: attention, benchmark, what its URL keeps, and what it does for a host without headers.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openPage, patience } from './support/chromium.mjs';
import { DemoPage } from './support/demo-page.mjs';
import { deploySite } from './support/deployed.mjs';
import { serveSite } from './support/site.mjs';
import { isolation } from './support/static-server.mjs';
import { numbersIn, runBenchmark, showAttention } from './support/views.mjs';

const viewports = [
  { width: 390, height: 844 },
  { width: 1440, height: 900 },
];
const deployed = deploySite({ headers: isolation });
const { onPage } = deployed;

for (const viewport of viewports) {
  test(`attention is shown with its masks, ${viewport.width} pixels wide`, async () => {
    await onPage(
      async (_demo, page) => {
        const text = 'the quick brown fox jumps over the lazy dog';
        const said = await showAttention(page, { text, window: '4' });
        const last = numbersIn(said)[0];
        assert.match(said, new RegExp(`\\(token ${last}\\) gives .* to .* \\(token ${last}\\)`));
        await page.focus('.heat-frame');
        for (let i = 0; i < 4; i++) await page.keyboard.press('ArrowLeft');
        assert.match(await page.textContent('.heat-detail'), /is out of the window of/);
        for (let i = 0; i < 5; i++) await page.keyboard.press('ArrowUp');
        await page.keyboard.press('ArrowRight');
        await page.keyboard.press('ArrowRight');
        await page.keyboard.press('ArrowRight');
        assert.match(await page.textContent('.heat-detail'), /cannot see it: the causal mask/);
        const before = await page.locator('.heat-frame canvas').screenshot();
        await page.selectOption('#attention-head', '1');
        assert.notDeepEqual(await page.locator('.heat-frame canvas').screenshot(), before);
      },
      { viewport },
    );
  });
}

test('attention takes the text of the playground, and tells of one that is empty', async () => {
  await onPage(async (demo, page) => {
    const text = await demo.generate({ prompt: 'fox', 'max-tokens': 12, seed: 3 });
    await page.getByRole('tab', { name: 'Attention' }).click();
    await page.getByRole('button', { name: 'Take the playground’s text' }).click();
    assert.equal((await page.inputValue('#attention-text')).trim(), `fox${text}`.trim());
    await page.fill('#attention-text', '');
    await page.getByRole('button', { name: 'Show', exact: true }).click();
    await page.locator('#attention .error-sentence').waitFor({ timeout: patience });
    assert.match(await page.textContent('#attention .error'), /prompt is empty/);
  });
});

for (const viewport of viewports) {
  test(`the benchmark runs here, and gives a table to copy, ${viewport.width} pixels wide`, async () => {
    await onPage(
      async (_demo, page) => {
        const report = await runBenchmark(page);
        const rows = report.split('\n').filter(line => /^\| [a-z]/.test(line));
        assert.equal(rows.length, 7);
        for (const row of rows) {
          const [median, least, most] = numbersIn(row.split('|').slice(2, 4).join(' '));
          assert.ok(0 < least && least <= median && median <= most, row);
        }
        assert.equal(await page.locator('#benchmark .figures-table tbody tr').count(), 7);
        await page.context().grantPermissions(['clipboard-read', 'clipboard-write']);
        await page.getByRole('button', { name: 'Copy as Markdown' }).click();
        await page.getByRole('button', { name: 'Copied' }).waitFor();
        assert.equal(await page.evaluate(() => navigator.clipboard.readText()), report);
      },
      { viewport },
    );
  });
}

test('the URL keeps what was set, and brings it back', async () => {
  await onPage(async (demo, page) => {
    assert.equal(new URL(page.url()).hash, '');
    const settings = { prompt: 'a fox & a #hash', 'max-tokens': 17, 'top-k': 5, window: 64 };
    await demo.set({ ...settings, 'kv-dtype': 'f16' });
    await page.getByRole('tab', { name: 'Lessons' }).click();
    await page.locator('[data-lesson="fork"]').click();
    await page.waitForFunction(() => location.hash.includes('lesson=fork'));
    await page.reload();
    await demo.state('empty');
    assert.ok(await page.locator('#lesson-fork').isVisible());
    for (const [id, value] of Object.entries(settings)) {
      assert.equal(await page.inputValue(`#${id}`), String(value));
    }
    assert.equal(await page.inputValue('#kv-dtype'), 'f16');
    await page.evaluate(() => {
      location.hash = 'view=playground&prompt=other&model=someone/a-model';
    });
    await page.waitForFunction(() => document.getElementById('prompt').value === 'other');
    assert.ok(await page.isChecked('#source-remote'));
    assert.equal(await page.inputValue('#remote-id'), 'someone/a-model');
    assert.equal(await page.inputValue('#window'), '');
  });
});

test('nothing leaves for a server but requests for files of the site', async () => {
  await onPage(async (demo, page) => {
    const requests = [];
    page.context().on('request', request => requests.push(request));
    await demo.generate({ prompt: 'a secret', 'max-tokens': 10 });
    await showAttention(page, { text: 'another secret' });
    assert.ok(requests.length > 0);
    for (const request of requests) {
      assert.equal(request.method(), 'GET');
      assert.ok(request.url().startsWith(deployed.server.url) || request.url().startsWith('blob:'));
      assert.doesNotMatch(request.url(), /secret/);
    }
  });
});

test('a host without COOP and COEP gets them from the service worker', async () => {
  const bare = await serveSite(deployed.site.folder);
  try {
    await onPage(
      async (demo, page) => {
        await page.waitForFunction(() => crossOriginIsolated, undefined, { timeout: patience });
        await demo.state('empty');
        assert.notEqual(await demo.generate({ 'max-tokens': 10, seed: 3 }), '');
      },
      { url: bare.url },
    );
  } finally {
    await bare.close();
  }
});

test('without service workers the page works as well, on one thread', async () => {
  const bare = await serveSite(deployed.site.folder);
  try {
    await onPage(
      async (demo, page) => {
        assert.equal(await page.evaluate(() => crossOriginIsolated), false);
        assert.notEqual(await demo.generate({ 'max-tokens': 10, seed: 3 }), '');
      },
      { url: bare.url, serviceWorkers: 'block' },
    );
  } finally {
    await bare.close();
  }
});

test('tokens tell their probability and what else might have come', async () => {
  const { page, close } = await openPage(deployed.browser);
  try {
    const demo = new DemoPage(page);
    await demo.open(deployed.server.url);
    await demo.generate({ 'max-tokens': 12, temperature: 0 });
    assert.equal(await page.locator('#output-completion .token').count(), 12);
    await page.locator('#output-completion .token').nth(2).hover();
    const percents = async () =>
      (await page.locator('#token-detail .share-number').allTextContents()).map(text =>
        text.startsWith('<') ? 0 : Number.parseFloat(text),
      );
    const shown = await percents();
    assert.equal(shown.length, 5);
    assert.deepEqual(
      shown,
      shown.toSorted((a, b) => b - a),
    );
    // Greedy: the token is the likeliest.
    assert.ok(
      await page
        .locator('#token-detail li')
        .first()
        .evaluate(li => li.matches('.drawn')),
    );
    assert.match(await page.textContent('#token-detail'), /^Token 3: .*, probability \d/);
    await page.focus('#output');
    await page.keyboard.press('ArrowRight');
    assert.match(await page.textContent('#token-detail'), /^Token 4: /);
    await page.keyboard.press('ArrowLeft');
    await page.keyboard.press('ArrowLeft');
    assert.match(await page.textContent('#token-detail'), /^Token 2: /);
  } finally {
    await close();
  }
});
