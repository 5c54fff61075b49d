// The site as it is deployed: what it shows of the cache's blocks.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { deploySite } from './support/deployed.mjs';
import { tiny } from './support/site.mjs';

const blockTokens = 16;
const poolBlocks = tiny.nPositions / blockTokens;
const { onPage } = deploySite();
const cells = (page, kind) => page.locator(`#cache-live .block[data-kind="${kind}"]`);

/** What the replay says of each step. */
async function replayedLines(page) {
  const slider = page.locator('#timeline');
  const last = Number(await slider.getAttribute('max'));
  const lines = [];
  for (let step = 0; step <= last; step++) {
    await slider.fill(String(step));
    lines.push(await paintedLine(page));
  }
  return lines;
}

/** The line about the moment that was asked for last, which the next frame shows. */
function paintedLine(page) {
  return page.evaluate(
    () =>
      new Promise(resolve => {
        requestAnimationFrame(() =>
          requestAnimationFrame(() => resolve(document.querySelector('.event-line').textContent)),
        );
      }),
  );
}

test('the pool is shown block by block, filled as far as it is', async () => {
  await onPage(async (demo, page) => {
    await demo.load();
    assert.equal(await cells(page, 'free').count(), poolBlocks);
    await demo.generate({ 'max-tokens': 40, temperature: 0 });
    const { tokens } = await demo.cache();
    const used = Math.ceil(tokens / blockTokens);
    assert.equal(await cells(page, 'used').count(), used);
    assert.equal(await cells(page, 'free').count(), poolBlocks - used);

    const table = await page.locator('.block-table li').allTextContents();
    assert.equal(table.length, used);
    assert.match(table[0], /^0–15 lies in block \d+$/);
    assert.match(table.at(-1), new RegExp(`–${tokens - 1} lies in block \\d+$`));
  });
});

test('the grid is gone through by key, and says what each block holds', async () => {
  await onPage(async (demo, page) => {
    await demo.generate({ 'max-tokens': 40, temperature: 0 });
    await page.focus('#cache-live .blocks');
    await page.keyboard.press('ArrowRight');
    const detail = () => page.textContent('#cache-live .block-detail');
    const first = await detail();
    assert.match(first, /^Block 0: 16 of 16 tokens of sequence 1\./);
    const selected = page.locator('#cache-live [aria-selected="true"]');
    assert.equal(await selected.locator('.unseen').textContent(), first);
    await page.keyboard.press('End');
    assert.equal(await detail(), `Block ${poolBlocks - 1}: free.`);
    await page.keyboard.press('ArrowRight');
    assert.equal(await detail(), `Block ${poolBlocks - 1}: free.`);
    await page.keyboard.press('Escape');
    assert.equal(await selected.count(), 0);
  });
});

test('the replay goes back to each token of the run', async () => {
  await onPage(async (demo, page) => {
    // More than the engine may run ahead of the page.
    await demo.generate({ 'max-tokens': 240, temperature: 0 });
    const cache = await demo.cache();
    const { tokens } = cache;
    const lines = await replayedLines(page);
    const totals = lines
      .map(line => /^Token (\d+) appended to block|appended, (\d+) in all/.exec(line))
      .filter(match => match !== null)
      .map(([, one, all]) => Number(one ?? all));
    // The prompt, and then each token but the last, whose keys nobody needs.
    assert.equal(totals.length, 240, lines.join('\n'));
    assert.deepEqual(
      totals,
      totals.map((_, step) => totals[0] + step),
      'each token has a step',
    );
    assert.equal(totals.at(-1), tokens);
    assert.deepEqual(await demo.cache(), cache);
    await page.locator('#timeline').fill('1');
    await paintedLine(page);
    assert.ok((await demo.cache()).tokens < tokens);
    await page.click('text=Replay');
    await page.waitForFunction(
      () => document.querySelector('.timeline .play').textContent === 'Pause',
    );
  });
});

test('a prompt that begins alike is a prefix hit, and others evict it in the end', async () => {
  await onPage(async (demo, page) => {
    const prompt = 'the quick brown fox jumps over the lazy dog and '.repeat(2);
    await demo.generate({ prompt, 'max-tokens': 8, temperature: 0 });
    assert.doesNotMatch(await demo.text('finish-reason'), /in the cache already/);
    await demo.generate({ prompt: `${prompt}more`, 'max-tokens': 8 });
    assert.match(await demo.text('finish-reason'), /\d+ of the \d+ tokens .* in the cache already/);
    assert.match((await replayedLines(page)).join('\n'), /Prefix hit: sequence 2 takes over/);
    assert.ok((await page.locator('#cache-live .block.in-tree').count()) > 0);

    const lines = [];
    for (const word of ['one', 'two', 'three', 'four']) {
      await demo.generate({ prompt: `${word} `.repeat(20), 'max-tokens': 60 });
      lines.push(...(await replayedLines(page)));
    }
    assert.match(lines.join('\n'), /evicted from the prefix tree/);
  });
});

test('with a window, blocks slide out of it', async () => {
  await onPage(async (demo, page) => {
    await demo.set({ window: 20 });
    await demo.generate({ 'max-tokens': 60, temperature: 0 });
    assert.match((await replayedLines(page)).join('\n'), /Blocks? [\d, ]+ slid out of the window/);
    const table = await page.locator('.block-table li').allTextContents();
    assert.match(table[0], /dropped$/);
    assert.match(table.at(-1), /block \d+$/);
    const { tokens } = await demo.cache();
    assert.ok(tokens <= 20 + blockTokens, `${tokens} tokens are held`);
  });
});

test('the formula has the numbers of the model and of its key/value type', async () => {
  await onPage(async (demo, page) => {
    for (const [dtype, bytes] of [
      ['f32', 2 * tiny.nLayer * tiny.nKvHead * tiny.headDim * 4],
      ['f16', 2 * tiny.nLayer * tiny.nKvHead * tiny.headDim * 2],
      ['q8', 2 * tiny.nLayer * tiny.nKvHead * (tiny.headDim + 4)],
    ]) {
      await demo.set({ 'kv-dtype': dtype });
      await demo.load();
      const factors = (await page.locator('#kv-formula b').allTextContents()).slice(0, -1);
      const product = factors
        .map(text => text.replace(/[()]/g, '').split(' + ').map(Number))
        .reduce((total, terms) => total * terms.reduce((sum, term) => sum + term), 1);
      assert.equal(product, bytes);
      assert.equal(await demo.text('formula-result'), String(bytes));
      assert.equal((await demo.cache()).perToken, bytes);
    }
  });
});

test('a run can be continued and written anew', async () => {
  await onPage(async (demo, page) => {
    const whole = await demo.generate({ 'max-tokens': 40, temperature: 0 });
    const half = await demo.generate({ 'max-tokens': 20 });
    assert.ok(whole.startsWith(half));
    await page.click('#continue');
    await demo.ended();
    assert.equal(await demo.text('output-completion'), whole);
    await demo.set({ temperature: 1 });
    await demo.generate({ seed: 5 });
    const seed = await demo.number('seed-used');
    await page.click('#regenerate');
    await demo.ended();
    assert.notEqual(await demo.number('seed-used'), seed);
  });
});
