// The site as it is deployed: its lessons, each of which runs the engine.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { deploySite } from './support/deployed.mjs';
import { tiny } from './support/site.mjs';
import { numbersIn, openLesson, runLesson } from './support/views.mjs';

const viewports = [
  { width: 390, height: 844 },
  { width: 1440, height: 900 },
];
const deployed = deploySite();

/** A test at the size of a phone and at that of a desktop. */
function lessonTest(name, run) {
  for (const viewport of viewports) {
    test(`${name}, ${viewport.width} pixels wide`, () => deployed.onPage(run, { viewport }));
  }
}

lessonTest(
  'why a cache: the race is run, its tokens are the same, and its times charted',
  async (_demo, page) => {
    const said = await runLesson(page, 'why-cache', { 'Tokens to write': 32 });
    assert.match(said, /^Without a cache, 32 tokens took .* All three wrote the same tokens/);
    const lines = await page
      .locator('#lesson-why-cache path.line')
      .evaluateAll(paths => paths.map(path => path.getAttribute('d').split(/[ML]/).length - 1));
    assert.deepEqual(lines, [32, 32, 32]);
    const totals = page.locator('#lesson-why-cache .bars .bar-value');
    assert.equal(await totals.count(), 3);
  },
);

lessonTest('prefill and decode: tells the tokens of each', async (_demo, page) => {
  const said = await runLesson(page, 'prefill-decode', { 'Prompt, in tokens': 32 });
  assert.match(said, /^Prefill: 32 tokens in .* Decode: 31 tokens in/);
});

lessonTest(
  'the window slides: what is held stays within window and blocks',
  async (_demo, page) => {
    const said = await runLesson(page, 'window', { 'Window, in tokens': 24 });
    const [tokens, seen, held] = numbersIn(said);
    assert.equal(seen, 24);
    assert.ok(tokens > 100 && held <= 24 + 2 * 16, said);
    // The band: a token of a late row sees what is near, and neither what is far back nor what comes later.
    const colours = await page.locator('canvas.mask').evaluate(canvas => {
      const context = canvas.getContext('2d');
      const at = (row, column) => {
        const cell = canvas.width / 120;
        return [
          ...context.getImageData((column + 0.5) * cell, (row + 0.5) * cell, 1, 1).data,
        ].join();
      };
      return {
        near: at(100, 95),
        far: at(100, 20),
        later: at(50, 100),
        edge: at(100, 77),
        out: at(100, 75),
      };
    });
    assert.equal(colours.near, colours.edge);
    assert.equal(colours.far, colours.out);
    assert.equal(new Set([colours.near, colours.far, colours.later]).size, 3);
  },
);

lessonTest('a prefix hit: the second question computes only what is new', async (_demo, page) => {
  const said = await runLesson(page, 'prefix-hit');
  const [found, all, computed] = numbersIn(said);
  assert.equal(found + computed, all);
  assert.ok(found > computed, said);
  assert.equal(await page.locator('#lesson-prefix-hit .bars tr').count(), 3);
});

lessonTest('fork and copy on write: each step has its line', async (_demo, page) => {
  const said = await runLesson(page, 'fork');
  assert.match(said, /One block was copied/);
  const log = await page.locator('#lesson-fork .log li').allTextContents();
  assert.equal(log.length, 4);
  assert.match(
    log[1],
    /^Fork: Sequence \d+ forked from sequence \d+: .* shared, nothing copied\.$/,
  );
  assert.match(log[2], /^One way: Block \d+ copied on write/);
  assert.doesNotMatch(log[3], /copied on write/);
  const ways = await page.locator('#lesson-fork .way').allTextContents();
  assert.equal(new Set(ways).size, 2);
});

lessonTest('smaller keys and values: the bytes are those of the formula', async (_demo, page) => {
  await runLesson(page, 'smaller');
  const shown = await page.locator('#lesson-smaller .bar-value').allTextContents();
  const bytes = shown.map(text => numbersIn(text)[0]);
  const { nLayer, nKvHead, headDim } = tiny;
  const of = heads =>
    [headDim * 4, headDim * 2, headDim + 4].map(size => 2 * nLayer * heads * size);
  assert.deepEqual(bytes, [...of(nKvHead), ...of(1)]);
  assert.equal(await page.locator('#lesson-smaller .variants dd').count(), 6);
});

lessonTest('the end of the table: a run stops, fails or makes room', async (_demo, page) => {
  const end = 'At the end';
  assert.match(await runLesson(page, 'end', { [end]: 'stop' }), /the run stopped/);
  assert.equal(await page.locator('#lesson-end .position.taken').count(), 48);
  assert.match(
    await runLesson(page, 'end', { [end]: 'error' }),
    /failed, with the error “The context of 48/,
  );
  const said = await runLesson(page, 'end', { [end]: 'shift' });
  assert.deepEqual(numbersIn(said), [90, 48, 8]);
  const taken = await page.locator('#lesson-end .position.taken').count();
  assert.ok(taken > 8 && taken <= 48, `${taken} positions`);
});

test('a lesson can be stopped, and another be run', async () => {
  await deployed.onPage(async (demo, page) => {
    await openLesson(page, 'why-cache');
    await page.getByLabel('Tokens to write').selectOption('256');
    const lesson = page.locator('#lesson-why-cache');
    // From within, because by the time that a click from outside arrives the race may be over.
    await lesson.evaluate(element => {
      const observer = new MutationObserver(() => {
        if (!element.querySelector('path.line')) return;
        observer.disconnect();
        element.querySelector('[data-needs="job"]').click();
      });
      observer.observe(element, { childList: true, subtree: true });
    });
    await lesson.getByRole('button', { name: 'Run' }).click();
    await lesson.locator('.conclusion').filter({ hasText: 'Stopped before its end.' }).waitFor();
    await demo.state('ready');
    assert.match(await runLesson(page, 'end', { 'At the end': 'stop' }), /the run stopped/);
  });
});
