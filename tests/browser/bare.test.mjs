// The package as it is built, in a page without a bundler, against PyTorch.

import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { MIN_VOCABULARY } from '../../scripts/fixtures/made-up-vocabulary.mjs';
import { makeVocabulary } from '../../scripts/fixtures/make-checkpoint.mjs';
import { openBarePage } from './support/bare-page.mjs';
import { launchChromium } from './support/chromium.mjs';
import { DemoPage } from './support/demo-page.mjs';
import { repository } from './support/models.mjs';

const golden = join(repository, 'tests/golden/head-dim-64');
const strategies = ['block', 'concat', 'none'];
let browser;
let bare;
let expected;
let bytesPerToken;

before(async () => {
  expected = JSON.parse(await readFile(join(golden, 'expected.json'), 'utf8'));
  const config = JSON.parse(await readFile(join(golden, 'config.json'), 'utf8'));
  bytesPerToken = 2 * config.n_layer * config.n_embd * 4;
  // The golden models have no tokenizer. These ids stand for other texts than theirs, which have none.
  const { tokens, merges } = makeVocabulary(MIN_VOCABULARY);
  browser = await launchChromium();
  bare = await openBarePage(browser, golden, {
    'vocab.json': JSON.stringify(Object.fromEntries(tokens.map((token, id) => [token, id]))),
    'merges.txt': `#version: 0.2\n${merges.map(pair => `${pair.join(' ')}\n`).join('')}`,
  });
  await bare.page.evaluate(async () => {
    globalThis.engine = await globalThis.kvasm.Engine.load('./model/', { dtype: 'f32' });
  });
});

after(async () => {
  await bare?.close();
  await browser?.close();
});

for (const cache of strategies) {
  test(`greedy ids are those of PyTorch with '${cache}'`, async () => {
    for (const [index, greedy] of expected.greedy.entries()) {
      if (greedy.length === 0) continue;
      const ids = await bare.page.evaluate(
        async ([prompt, options]) => {
          const generation = globalThis.engine.generate(prompt, options);
          const tokens = [];
          for await (const { token } of generation) tokens.push(token);
          const result = await generation.result();
          return { tokens, again: [...result.tokens] };
        },
        [expected.ids[index], { maxTokens: greedy.length, temperature: 0, stopTokens: [], cache }],
      );
      assert.deepEqual(ids.tokens, greedy);
      assert.deepEqual(ids.again, greedy);
    }
  });
}

test('a sampled run is the same with every strategy', async () => {
  const runs = [];
  for (const cache of strategies) {
    runs.push(
      await bare.page.evaluate(
        async ([prompt, options]) => {
          const result = await globalThis.engine.generate(prompt, options).result();
          return [...result.tokens];
        },
        [expected.ids[1], { maxTokens: 50, temperature: 1, topP: 0.95, seed: 5, cache }],
      ),
    );
  }
  assert.equal(runs[0].length, 50);
  assert.deepEqual(runs[1], runs[0]);
  assert.deepEqual(runs[2], runs[0]);
});

for (const cache of ['block', 'concat']) {
  test(`each token adds 2 · n_layer · n_kv_head · head_dim · 4 bytes with '${cache}'`, async () => {
    const prompt = expected.ids[1];
    for (let maxTokens = 1; maxTokens <= 20; maxTokens++) {
      const { kv } = await bare.page.evaluate(
        async ([prompt, options]) =>
          (await globalThis.engine.generate(prompt, options).result()).memory,
        [prompt, { maxTokens, temperature: 0, stopTokens: [], cache }],
      );
      assert.equal(kv.perToken, bytesPerToken);
      // The last token is drawn and not computed.
      assert.equal(kv.used, (prompt.length + maxTokens - 1) * bytesPerToken);
    }
  });
}

test('memory() tells of the cache while tokens come', async () => {
  const prompt = expected.ids[1];
  const reports = await bare.page.evaluate(
    async ([prompt, options]) => {
      const reports = [];
      for await (const _ of globalThis.engine.generate(prompt, options)) {
        reports.push((await globalThis.engine.memory()).kv);
      }
      return reports;
    },
    [prompt, { maxTokens: 40, temperature: 0, stopTokens: [] }],
  );
  assert.equal(reports.length, 40);
  let last = 0;
  for (const [index, { used, tokens }] of reports.entries()) {
    assert.equal(used, tokens * bytesPerToken);
    // The run is at this token or ahead of it, or over.
    assert.ok(tokens === 0 || tokens >= prompt.length + index, `${tokens} at ${index}`);
    if (tokens > 0) assert.ok(used >= last);
    last = used;
  }
});

test('streams at once have the tokens that each has alone', async () => {
  const { alone, together } = await bare.page.evaluate(async () => {
    const { engine } = globalThis;
    const prompts = [[1, 2, 3], [4], [5, 6, 7, 8, 9, 10, 11], [1, 2, 4]];
    const options = { maxTokens: 25, temperature: 1, seed: 3, stopTokens: [] };
    const tokensOf = async prompt => {
      const tokens = [];
      for await (const { token } of engine.generate(prompt, options)) tokens.push(token);
      return tokens;
    };
    const alone = [];
    for (const prompt of prompts) alone.push(await tokensOf(prompt));
    return { alone, together: await Promise.all(prompts.map(tokensOf)) };
  });
  assert.equal(alone[0].length, 25);
  assert.deepEqual(together, alone);
});

test('a session is forked, saved, and restored', async () => {
  const seen = await bare.page.evaluate(async () => {
    const { engine } = globalThis;
    const options = { maxTokens: 6, temperature: 0, stopTokens: [] };
    const chat = engine.session();
    await chat.generate([1, 2, 3], options).result();
    const fork = await chat.fork();
    const restored = await engine.restore(await chat.save());
    const sessions = [chat, fork, restored];
    const runs = sessions.map(session => session.generate([4, 5], options).result());
    const results = await Promise.all(runs);
    const { blocks, sequences } = await engine.cacheView();
    for (const session of sessions) await session.dispose();
    const { kv } = await engine.memory();
    return {
      tokens: results.map(({ tokens }) => tokens.join()),
      cached: results.map(({ usage }) => usage.cached),
      held: sequences.length,
      owned: blocks.filter(({ owners }) => owners.length > 0).length,
      used: kv.used,
    };
  });
  assert.equal(new Set(seen.tokens).size, 1);
  assert.deepEqual(seen.cached, [8, 8, 8]);
  assert.equal(seen.held, 3);
  assert.ok(seen.owned >= 2);
  assert.equal(seen.used, 0);
});

test('disposing leaves no worker, and nothing has failed meanwhile', async () => {
  const demo = new DemoPage(bare.page);
  await demo.workers(1);
  await bare.page.evaluate(() => globalThis.engine.dispose());
  await demo.workers(0);
  assert.deepEqual(bare.failures, []);
});
