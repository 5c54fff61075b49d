// What the options of generate do to the tokens, in the built package on the real WebAssembly.

import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { makeCheckpoint } from '../../scripts/fixtures/make-checkpoint.mjs';

const { Engine } = await import('../../dist/node.js');
const shape = { nLayer: 2, nHead: 4, nKvHead: 2, nEmbd: 64, nPositions: 256 };
let model;
let engine;

before(async () => {
  model = await mkdtemp(join(tmpdir(), 'kvasm-options-'));
  await makeCheckpoint(model, { ...shape, std: 0.2 });
  engine = await Engine.load(model);
});

after(async () => {
  await engine.dispose();
  await rm(model, { recursive: true, force: true });
});

async function collect(generation) {
  const chunks = [];
  for await (const chunk of generation) chunks.push(chunk);
  return chunks;
}

test("logprobs are the model's own, whatever the options that the tokens are drawn by", async () => {
  const options = { maxTokens: 20, temperature: 0, stopTokens: [], logprobs: 5 };
  const chunks = await collect(engine.generate('Once upon a time', options));
  assert.equal(chunks.length, 20);
  for (const { token, logprob, topLogprobs } of chunks) {
    assert.equal(topLogprobs.length, 5);
    assert.equal(topLogprobs[0].token, token);
    assert.equal(topLogprobs[0].logprob, logprob);
    const values = topLogprobs.map(({ logprob }) => logprob);
    assert.deepEqual(
      values,
      values.toSorted((a, b) => b - a),
    );
    assert.ok(values.reduce((sum, value) => sum + Math.exp(value), 0) <= 1 + 1e-6);
  }
  // All of the vocabulary, and so all of the probability.
  const hot = { maxTokens: 3, temperature: 5, seed: 1, stopTokens: [], logprobs: 1e6 };
  const all = await collect(engine.generate('Once upon a time', hot));
  for (const { token, logprob, topLogprobs } of all) {
    const sum = topLogprobs.reduce((sum, { logprob }) => sum + Math.exp(logprob), 0);
    assert.ok(Math.abs(sum - 1) < 1e-5, `${sum}`);
    assert.equal(topLogprobs.find(other => other.token === token).logprob, logprob);
  }
  // Drawn hot or cold, the first token's distribution is the same.
  assert.deepEqual(all[0].topLogprobs.slice(0, 5), chunks[0].topLogprobs);
});

test('logprobs are the same bits in a batch, and with any cache strategy', async () => {
  const options = { maxTokens: 12, temperature: 1, seed: 3, stopTokens: [], logprobs: 3 };
  const alone = await collect(engine.generate('Zebras', options));
  const runs = ['block', 'concat', 'none', 'block'].map(cache =>
    collect(engine.generate('Zebras', { ...options, cache })),
  );
  for (const chunks of await Promise.all(runs)) assert.deepEqual(chunks, alone);
});
