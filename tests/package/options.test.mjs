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

const greedy = { temperature: 0, stopTokens: [] };

test('logitBias forces tokens and rules them out', async () => {
  const free = await engine.generate('Once', { ...greedy, maxTokens: 10 }).result();
  const forced = engine.generate('Once', { ...greedy, maxTokens: 3, logitBias: { 7: 1000 } });
  assert.deepEqual([...(await forced.result()).tokens], [7, 7, 7]);
  const logitBias = Object.fromEntries([...free.tokens].map(id => [id, -Infinity]));
  const { tokens } = await engine
    .generate('Once', { ...greedy, maxTokens: 10, logitBias })
    .result();
  assert.ok(tokens.every(id => !free.tokens.includes(id)));
});

test('penalties end a loop, and those for the output leave the prompt alone', async () => {
  const prompt = [5, 6, 7, 8];
  const favoured = { 5: 500, 6: 400, 7: 300, 8: 200, 9: 100 };
  const draw = async penalties => {
    const options = { ...greedy, maxTokens: 5, logitBias: favoured, ...penalties };
    return [...(await engine.generate(prompt, options).result()).tokens];
  };
  assert.deepEqual(await draw({}), [5, 5, 5, 5, 5]);
  assert.deepEqual(await draw({ presencePenalty: 900 }), [5, 6, 7, 8, 9]);
  assert.deepEqual(await draw({ frequencyPenalty: 900 }), [5, 6, 7, 8, 9]);
});

test('differently drawn runs in one batch are as they are alone', async () => {
  const runs = [
    { temperature: 0 },
    { temperature: 1.5, topK: 20, repetitionPenalty: 1.3 },
    { temperature: 0.7, minP: 0.05, frequencyPenalty: 0.5 },
    { temperature: 1, topP: 0.9, presencePenalty: 1, logitBias: { 9: 3 } },
  ].map(options => ({ ...options, maxTokens: 40, seed: 5, stopTokens: [] }));
  const run = async options => (await engine.generate('Once upon a time', options).result()).tokens;
  const alone = [];
  for (const options of runs) alone.push(await run(options));
  assert.deepEqual(await Promise.all(runs.map(run)), alone);
});

test('stop strings end the text where they begin, over tokens', async () => {
  const free = await engine.generate('Once', { ...greedy, maxTokens: 40 }).result();
  const middle = free.text.slice(11, 16);
  const expected = free.text.slice(0, free.text.indexOf(middle));
  const result = await engine.generate('Once', { ...greedy, maxTokens: 40, stop: middle }).result();
  assert.equal(result.text, expected);
  assert.equal(result.finishReason, 'stop');
});

test('n completions are those of n runs, and the prompt is computed once', async () => {
  const prompt = 'Once upon a time there was '.repeat(3);
  const options = { maxTokens: 20, temperature: 1.2, repetitionPenalty: 1.1, stopTokens: [] };
  const alone = [];
  for (const seed of [7, 8, 9]) {
    alone.push([...(await engine.generate(prompt, { ...options, seed }).result()).tokens]);
  }
  const cold = await Engine.load(model, { prefixCache: false, kvBytes: 4e6 });
  const { choices, usage } = await cold.generate(prompt, { ...options, seed: 7, n: 3 }).result();
  assert.deepEqual(
    choices.map(({ tokens }) => [...tokens]),
    alone,
  );
  assert.equal(usage.completion, 60);
  assert.equal((await cold.memory()).kv.used, 0);
  await cold.dispose();
});

test('logits are the same bits as those that tokens are drawn from', async () => {
  const { vocabSize } = engine.info.config;
  const ids = await engine.tokenizer.encode('Once upon a time there was a fox');
  const all = await engine.logits(ids, { all: true });
  assert.equal(all.length, ids.length * vocabSize);
  for (let i = 0; i < ids.length; i++) {
    const last = await engine.logits(ids.slice(0, i + 1));
    assert.deepEqual(last, all.slice(i * vocabSize, (i + 1) * vocabSize));
  }
  const best = all
    .slice(-vocabSize)
    .reduce((best, _, i, row) => (row[i] > row[best] ? i : best), 0);
  const { tokens } = await engine.generate(ids, { ...greedy, maxTokens: 1 }).result();
  assert.equal(tokens[0], best);
});

test('a score is what the logits say, and what logprobs of generate say', async () => {
  const { vocabSize } = engine.info.config;
  const options = { ...greedy, maxTokens: 10, echo: true, logprobs: 0 };
  const { tokens, text, choices } = await engine.generate('Once upon', options).result();
  const score = await engine.score(tokens);
  assert.equal(score.tokens.map(({ token }) => token).join(), [...tokens].join());
  assert.equal(await engine.tokenizer.decode(tokens), text);
  assert.equal(score.tokens[0].logprob, undefined);
  const scores = score.tokens.map(({ logprob }) => logprob);
  assert.deepEqual(
    choices[0].chunks.map(({ logprob }) => logprob),
    scores,
  );
  // All of it is known by now, and is told as if it were not.
  for (const cache of ['block', 'concat', 'none']) {
    const again = { maxTokens: 0, echo: true, logprobs: 2, cache };
    const { chunks, usage } = await engine.generate(tokens, again).result();
    assert.deepEqual(
      chunks.map(({ logprob }) => logprob),
      scores,
    );
    assert.ok(chunks.slice(1).every(({ topLogprobs }) => topLogprobs.length === 2));
    assert.equal(chunks[0].topLogprobs, undefined);
    assert.deepEqual(usage, { prompt: tokens.length, cached: 0, completion: 0 });
  }
  const logits = await engine.logits(tokens, { all: true });
  let total = 0;
  for (let i = 1; i < tokens.length; i++) {
    const row = logits.slice((i - 1) * vocabSize, i * vocabSize);
    const max = row.reduce((a, b) => Math.max(a, b));
    const logSum = Math.log(row.reduce((sum, logit) => sum + Math.exp(logit - max), 0)) + max;
    const expected = row[tokens[i]] - logSum;
    assert.ok(Math.abs(score.tokens[i].logprob - expected) < 1e-4);
    total += score.tokens[i].logprob;
  }
  assert.equal(score.total, total);
  assert.ok(Math.abs(score.perplexity - Math.exp(-total / (tokens.length - 1))) < 1e-9);
  const one = await engine.score([5]);
  assert.deepEqual([one.total, one.perplexity], [0, undefined]);
});

test('embeddings do not depend on chunks, company or what was computed before', async () => {
  const text = 'the quick brown fox jumps over the lazy dog '.repeat(3);
  const mean = await engine.embed(text);
  const last = await engine.embed(text, { pooling: 'last' });
  assert.equal(mean.length, engine.info.config.nEmbd);
  assert.notDeepEqual(mean, last);
  const other = await Engine.load(model, { prefillChunk: 3, kvBytes: 4e6 });
  const run = other.generate('Once', { ...greedy, maxTokens: 60 }).result();
  const [again, scored] = await Promise.all([other.embed(text), other.score(text)]);
  assert.deepEqual(again, mean);
  assert.deepEqual(scored, await engine.score(text));
  assert.deepEqual(await other.embed(text, { pooling: 'last' }), last);
  const { tokens } = await run;
  assert.deepEqual(
    tokens,
    (await engine.generate('Once', { ...greedy, maxTokens: 60 }).result()).tokens,
  );
  assert.equal((await other.memory()).kv.used, 0);
  await other.dispose();
});
