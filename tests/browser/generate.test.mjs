// The site as it is deployed: loading, streaming, stopping, and the numbers of the cache.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openPage } from './support/chromium.mjs';
import { DemoPage } from './support/demo-page.mjs';
import { deploySite } from './support/deployed.mjs';
import { serveSite, tiny } from './support/site.mjs';
import { isolation } from './support/static-server.mjs';

const bytesPerToken = 2 * tiny.nLayer * tiny.nKvHead * tiny.headDim * 4;
const strategies = ['block', 'concat', 'none'];
const deployed = deploySite();
const { onPage } = deployed;

/** Notes each text that the completion has had. */
function recordTexts(page) {
  return page.evaluate(() => {
    const completion = document.getElementById('output-completion');
    globalThis.texts = [];
    new MutationObserver(() => {
      if (completion.textContent !== '') globalThis.texts.push(completion.textContent);
    }).observe(completion, { childList: true, characterData: true, subtree: true });
  });
}

for (const [name, headers] of [
  ['with COOP and COEP', isolation],
  ['without COOP and COEP', {}],
]) {
  test(`loads and streams ${name}`, async () => {
    const own = await serveSite(deployed.site.folder, { headers });
    try {
      await onPage(
        async (demo, page) => {
          assert.equal(await page.evaluate(() => crossOriginIsolated), headers === isolation);
          assert.ok(await page.isVisible('#random-note'), 'says that the weights are random');
          await demo.load();
          assert.ok(await page.isHidden('#load-report'));
          assert.equal(await demo.text('load-percent'), '100 %');
          assert.equal(await demo.number('load-progress'), 100);
          assert.match(await demo.text('load-bytes'), /^Weights: 198 KiB$/);
          assert.match(await demo.text('model-status'), /2 layers, 2 heads.*256 positions/);
          assert.ok(await page.isVisible('#noise-badge'));

          await recordTexts(page);
          const text = await demo.generate({ 'max-tokens': 60, seed: 11 });
          const texts = await page.evaluate(() => globalThis.texts);
          assert.ok(texts.length >= 10, `${texts.length} steps are no stream`);
          for (const [index, later] of texts.slice(1).entries()) {
            assert.ok(later.startsWith(texts[index]), `'${later}' after '${texts[index]}'`);
          }
          assert.equal(texts.at(-1).trim(), text);
          assert.equal(await demo.text('output-prompt'), 'Once upon a time');
          assert.match(await demo.text('finish-reason'), /^Ended: /);
          assert.equal(await demo.number('seed-used'), 11);
          for (const id of ['tokens-per-second', 'first-token', 'prefill', 'memory-heap']) {
            assert.ok((await demo.number(id)) > 0, id);
          }
        },
        // Which would add the headers; another test sees to that.
        { url: own.url, serviceWorkers: 'block' },
      );
    } finally {
      await own.close();
    }
  });
}

test('generates at once where nothing was loaded before', async () => {
  await onPage(async demo => {
    assert.notEqual(await demo.generate({ 'max-tokens': 30, seed: 3 }), '');
  });
});

test('stops within a token, and generates again', async () => {
  await onPage(async (demo, page) => {
    const settings = { 'max-tokens': 200, seed: 11, temperature: 1 };
    const whole = await demo.generate(settings);
    await page.evaluate(() => {
      const completion = document.getElementById('output-completion');
      const observer = new MutationObserver(() => {
        // The run before has left its text.
        if (completion.textContent.length < 10 || document.body.dataset.state !== 'generating') {
          return;
        }
        observer.disconnect();
        // From within, because by the time that a click from outside arrives the run may be over.
        document.getElementById('stop').click();
        globalThis.stoppedAt = completion.textContent;
      });
      observer.observe(completion, { childList: true, characterData: true, subtree: true });
    });
    const stopped = await demo.generate();
    assert.match(await demo.text('finish-reason'), /you stopped it/);
    const stoppedAt = (await page.evaluate(() => globalThis.stoppedAt)).trim();
    assert.ok(stopped.startsWith(stoppedAt) && whole.startsWith(stopped));
    // No token of this vocabulary is longer than six characters.
    assert.ok(stopped.length - stoppedAt.length <= 6, `${stoppedAt} became ${stopped}`);
    assert.equal(await demo.generate(), whole);
  });
});

test('the cache grows by exactly 2 · n_layer · n_kv_head · head_dim · 4 bytes a token', async () => {
  await onPage(async demo => {
    await demo.load();
    assert.equal(await demo.text('formula-result'), String(bytesPerToken));
    const empty = await demo.cache();
    assert.deepEqual(empty, {
      used: 0,
      tokens: 0,
      perToken: bytesPerToken,
      reserved: tiny.nPositions * bytesPerToken,
    });
    for (const strategy of ['block', 'concat']) {
      let last;
      for (const count of [1, 2, 3, 4, 5, 20, 21]) {
        await demo.generate({
          'cache-strategy': strategy,
          'max-tokens': count,
          temperature: 0,
          seed: 1,
        });
        // Greedy text of this model goes on for longer than this.
        assert.equal(await demo.number('token-count'), count);
        const cache = await demo.cache();
        assert.equal(cache.used, cache.tokens * bytesPerToken);
        if (last) {
          const grown = cache.used - last.cache.used;
          assert.equal(grown, (count - last.count) * bytesPerToken, `${strategy}, ${count} tokens`);
        }
        last = { count, cache };
      }
    }
    await demo.generate({ 'cache-strategy': 'none' });
    const cache = await demo.cache();
    assert.equal(cache.used, 0);
    assert.equal(cache.tokens, 0);
  });
});

test('the cache is shown while the text runs, token for token', async () => {
  await onPage(async (demo, page) => {
    await demo.load();
    await page.evaluate(() => {
      const used = document.getElementById('kv-used');
      globalThis.useds = [];
      new MutationObserver(() => globalThis.useds.push(Number(used.value))).observe(used, {
        attributes: true,
      });
    });
    await demo.generate({ 'max-tokens': 220, temperature: 0 });
    const useds = await page.evaluate(() => globalThis.useds);
    assert.equal(useds.at(-1), (await demo.cache()).used);
    for (const [index, used] of useds.entries()) {
      assert.equal(used % bytesPerToken, 0);
      assert.ok(index === 0 || used >= useds[index - 1], useds.join());
    }
  });
});

test('all strategies give one text for one seed', async () => {
  await onPage(async demo => {
    for (const seed of [1, 2, 3]) {
      const texts = [];
      for (const strategy of strategies) {
        texts.push(await demo.generate({ 'cache-strategy': strategy, 'max-tokens': 60, seed }));
      }
      assert.deepEqual(texts, [texts[0], texts[0], texts[0]]);
    }
  });
});

test('streams and counts where no frames come, as in a hidden tab', async () => {
  const { page, close } = await openPage(deployed.browser);
  try {
    await page.addInitScript(() => {
      globalThis.requestAnimationFrame = () => 1;
    });
    const demo = new DemoPage(page);
    await demo.open(deployed.server.url);
    assert.notEqual(await demo.generate({ 'max-tokens': 30, seed: 3 }), '');
    assert.ok((await demo.cache()).used > 0);
  } finally {
    await close();
  }
});

test('shows markup as the text that it is', async () => {
  await onPage(async (demo, page) => {
    const prompt = '<img src=x onerror="throw 1"><b>bold</b>';
    await demo.generate({ prompt, 'max-tokens': 5, seed: 3 });
    assert.equal(await demo.text('output-prompt'), prompt);
    assert.equal(await page.locator('#output-prompt *').count(), 0);
    assert.equal(await page.locator('#output-completion :not(span)').count(), 0);
  });
});

test('refuses sampling settings that are out of range, and says so at the field', async () => {
  await onPage(async (demo, page) => {
    await demo.load();
    await demo.set({ 'top-p': 2 });
    await page.click('#generate');
    assert.ok(await page.evaluate(() => document.activeElement?.id === 'top-p'));
    assert.equal(await demo.text('finish-reason'), '');
  });
});

for (const width of [360, 768, 1280, 1920]) {
  test(`nothing is cut off at ${width} pixels`, async () => {
    await onPage(
      async (demo, page) => {
        await demo.generate({ 'max-tokens': 200, seed: 11, temperature: 1 });
        const overflow = await page.evaluate(() =>
          [...document.querySelectorAll('body *')]
            .filter(element => element.getBoundingClientRect().right > innerWidth + 0.5)
            .map(element => element.outerHTML.slice(0, 80)),
        );
        assert.deepEqual(overflow, []);
      },
      { viewport: { width, height: 740 } },
    );
  });
}
