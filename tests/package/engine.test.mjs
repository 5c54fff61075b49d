// The built package's engine in Node, on the real WebAssembly: streams at once, sessions, saved states, the
// options of the cache.

import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, afterEach, before, test } from 'node:test';
import { makeCheckpoint } from '../../scripts/fixtures/make-checkpoint.mjs';

const { Engine, GenerationError, InvalidArgumentError } = await import('../../dist/node.js');
const greedy = { temperature: 0, stopTokens: [] };
const shape = { nLayer: 2, nHead: 4, nKvHead: 2, nEmbd: 64, nPositions: 256 };
let model;

before(async () => {
  model = await mkdtemp(join(tmpdir(), 'kvasm-engine-'));
  await makeCheckpoint(model, { ...shape, std: 0.2 });
});

after(() => rm(model, { recursive: true, force: true }));

const engines = [];

afterEach(async () => {
  await Promise.all(engines.splice(0).map(engine => engine.dispose()));
});

/** An engine that the end of the test disposes of. */
async function load(options) {
  const engine = await Engine.load(model, options);
  engines.push(engine);
  return engine;
}

async function soloRun(prompt, options) {
  const engine = await Engine.load(model, { prefixCache: false });
  const result = await engine.generate(prompt, options).result();
  await engine.dispose();
  return result;
}

async function codeOf(promise) {
  return promise.then(
    () => 'none',
    error => error.code,
  );
}

test('four streams at once equal their solo runs (B60)', async () => {
  const engine = await load({ kvBytes: 8e6 });
  const prompts = ['Once upon a time', 'Zebras', 'the quick brown fox '.repeat(4), 'x'];
  const options = { ...greedy, maxTokens: 60 };
  const runs = prompts.map(async prompt => {
    const tokens = [];
    for await (const { token } of engine.generate(prompt, options)) tokens.push(token);
    return tokens;
  });
  const together = await Promise.all(runs);
  for (const [i, prompt] of prompts.entries()) {
    assert.deepEqual(together[i], [...(await soloRun(prompt, options)).tokens], prompt);
  }
});

test('strategies mix at once, in a pool with room for one only', async () => {
  const engine = await load();
  const options = { ...greedy, maxTokens: 40 };
  const solo = await soloRun('Once upon a time', options);
  const results = await Promise.all(
    ['block', 'none', 'block', 'concat', 'block', 'block'].map(cache =>
      engine.generate('Once upon a time', { ...options, cache }).result(),
    ),
  );
  for (const { tokens } of results) assert.deepEqual(tokens, solo.tokens);
  assert.equal((await engine.memory()).kv.used, 0);
});

test('growing prompts are cached, and tell so (B57)', async () => {
  const engine = await load();
  const ids = Array.from({ length: 34 }, (_, i) => 5 + 7 * i);
  const cached = [];
  for (const length of [14, 24, 34]) {
    const run = engine.generate(ids.slice(0, length), { ...greedy, maxTokens: 1 });
    cached.push((await run.result()).usage.cached);
  }
  assert.equal(cached[0], 0);
  assert.ok(cached[1] >= 14 && cached[2] >= 24, `${cached}`);
  const { prefix, kv } = await engine.memory();
  assert.equal(prefix.hits, 2);
  assert.equal(prefix.tokensReused, cached[1] + cached[2]);
  assert.ok(kv.cached > 0);
});

test('a session computes what is new, as a cold run of all would', async () => {
  const engine = await load();
  const chat = engine.session();
  const options = { ...greedy, maxTokens: 12 };
  for (const prompt of ['Once upon', ' a time', ' there was', '']) {
    const before = await chat.ids();
    const { usage, tokens } = await chat.generate(prompt, options).result();
    const all = await chat.ids();
    assert.equal(usage.prompt, all.length - 12);
    assert.equal(usage.cached, Math.max(0, before.length - 1));
    const cold = await soloRun(all.slice(0, usage.prompt), options);
    assert.deepEqual(tokens, cold.tokens);
  }
});

test('a session forks, rolls back, and is saved for another engine', async () => {
  const engine = await load({ kvDtype: 'q8' });
  const chat = engine.session();
  const options = { ...greedy, maxTokens: 8 };
  await chat.generate('Once upon a time', options).result();
  const ids = await chat.ids();
  const fork = await chat.fork();
  const [one, two] = await Promise.all([
    chat.generate(' there was', options).result(),
    fork.generate(' nobody', options).result(),
  ]);
  const memory = await engine.memory();
  assert.ok(memory.kv.shared > 0);
  assert.equal(memory.kv.perToken, 2 * 2 * 2 * (16 + 4));
  assert.deepEqual((await fork.ids()).slice(0, ids.length), ids);
  await fork.truncate(ids.length);
  const again = await fork.generate(' there was', options).result();
  assert.deepEqual(again.tokens, one.tokens);
  assert.notDeepEqual(two.tokens, one.tokens);

  const bytes = await chat.save();
  const other = await load({ kvDtype: 'q8' });
  const restored = await other.restore(bytes);
  assert.deepEqual(await restored.ids(), await chat.ids());
  const [here, there] = [chat, restored].map(session => session.generate('!', options).result());
  assert.deepEqual((await there).tokens, (await here).tokens);
  assert.equal((await there).usage.cached, (await here).usage.cached);

  const damaged = bytes.slice();
  damaged[100] ^= 1;
  await assert.rejects(other.restore(damaged), InvalidArgumentError);
  const foreign = await load({ kvDtype: 'f32' });
  await assert.rejects(foreign.restore(bytes), InvalidArgumentError);
});

test('an aborted session goes on from the tokens drawn so far', async () => {
  const engine = await load();
  const { usage } = await engine.generate('Once', { maxTokens: 0 }).result();
  const chat = engine.session();
  const seen = [];
  for await (const { token } of chat.generate('Once', greedy)) if (seen.push(token) === 3) break;
  const ids = await chat.ids();
  assert.deepEqual([...ids.slice(usage.prompt, usage.prompt + 3)], seen);
  const { tokens } = await chat.generate('', { ...greedy, maxTokens: 5 }).result();
  const cold = await soloRun(ids, { ...greedy, maxTokens: 5 });
  assert.deepEqual(tokens, cold.tokens);
});

test('a stop token is no part of a session', async () => {
  const engine = await load();
  const free = await engine.generate('Once', { ...greedy, maxTokens: 5 }).result();
  const chat = engine.session();
  const stopTokens = [free.tokens.at(-1)];
  const { finishReason, tokens, usage } = await chat
    .generate('Once', { temperature: 0, stopTokens })
    .result();
  assert.equal(finishReason, 'stop');
  assert.equal((await chat.ids()).length, usage.prompt + tokens.length);
});

test('a window and a shift go on past the context; stop and error end there', async () => {
  const engine = await load({ window: 32, contextLength: 64 });
  assert.equal(engine.info.window, 32);
  assert.equal(engine.info.contextLength, 64);
  const shift = { ...greedy, overflow: 'shift', nKeep: 4, maxTokens: 300 };
  const { tokens, memory } = await engine.generate('Once', shift).result();
  assert.equal(tokens.length, 300);
  assert.equal((await engine.memory()).heap, memory.heap);
  const stopped = await engine.generate('Once', greedy).result();
  assert.equal(stopped.usage.prompt + stopped.usage.completion, 65);
  assert.equal(stopped.finishReason, 'length');
  let drawn = 0;
  await assert.rejects(async () => {
    for await (const _ of engine.generate('Once', { ...greedy, overflow: 'error' })) drawn++;
  }, GenerationError);
  assert.equal(drawn, stopped.usage.completion);
});

test('a chat with a shift goes on for as long as it likes', async () => {
  const engine = await load({ contextLength: 48 });
  const chat = engine.session();
  const options = { ...greedy, overflow: 'shift', nKeep: 4, maxTokens: 10 };
  for (let turn = 0; turn < 30; turn++) {
    const { usage, tokens } = await chat.generate([9, 8, 7, 6, turn], options).result();
    assert.equal(tokens.length, 10);
    assert.ok(usage.prompt <= 48 && usage.cached < usage.prompt);
    assert.deepEqual([...(await chat.ids()).slice(0, 4)], [9, 8, 7, 6]);
  }
});

test('the view of the cache is told while tokens come', async () => {
  const engine = await load();
  const run = engine.generate('Once upon a time', { ...greedy, maxTokens: 200 });
  let owned = 0;
  for await (const _ of run) {
    const { blocks, sequences, blockTokens } = await engine.cacheView();
    assert.equal(blockTokens, 16);
    const mine = sequences.find(({ id }) => id === run.sequence);
    if (!mine) continue;
    const owners = blocks.flatMap(block => block.owners);
    const filled = owners.reduce((sum, owner) => sum + owner.filled, 0);
    assert.equal(filled, mine.tokens);
    owned++;
  }
  assert.ok(owned > 0);
  const view = await engine.cacheView();
  assert.deepEqual(view.sequences, []);
  for (const { refs, inPrefixTree } of view.blocks) assert.equal(refs, inPrefixTree ? 1 : 0);
});

test('a recording of the cache has each token of streams at once, though nobody asks before the end', async () => {
  const engine = await load({ kvBytes: 8e6 });
  const recording = await engine.recordCache();
  const lengths = [50, 80];
  const runs = lengths.map(async (maxTokens, i) => {
    const run = engine.generate([1 + i, 2, 3], { ...greedy, maxTokens, reusePrefix: false });
    const { tokens } = await run.result();
    return { id: run.sequence, size: 3 + tokens.length };
  });
  const sequences = await Promise.all(runs);
  const views = await recording.take();
  await recording.stop();
  for (const { id, size } of sequences) {
    const seen = views.flatMap(view => view.sequences.filter(sequence => sequence.id === id));
    const sizes = [...new Set(seen.map(({ tokens }) => tokens))];
    // The prompt at once, and then each token but the last, whose keys nobody needs.
    assert.deepEqual(sizes, [0, ...Array.from({ length: size - 3 }, (_, i) => 3 + i)]);
  }
  assert.deepEqual(views.at(-1), await engine.cacheView());
});

test('what does not fit is a typed error', async () => {
  assert.equal(await codeOf(Engine.load(model, { kvBytes: 100 })), 'invalid-argument');
  const engine = await load({ kvBytes: 40_000 });
  assert.ok(engine.info.kvBytes <= 40_000);
  const long = new Array(200).fill(7);
  assert.equal(await codeOf(engine.generate(long).result()), 'out-of-memory');
  const short = await engine.generate([7], { ...greedy, maxTokens: 3 }).result();
  assert.equal(short.tokens.length, 3);
});

test('attention rows sum to 1 within the causal mask and the window, and change nothing else', async () => {
  const prompt = 'the quick brown fox '.repeat(6);
  for (const window of [undefined, 10]) {
    const engine = await load(window === undefined ? {} : { window });
    const before = await engine.generate(prompt, { ...greedy, maxTokens: 20 }).result();
    const { tokens, texts, heads, weights } = await engine.attention(prompt, { layer: 1 });
    const n = tokens.length;
    assert.equal(texts.join(''), prompt);
    assert.deepEqual(heads, [0, 1, 2, 3]);
    assert.equal(weights.length, 4 * n * n);
    for (let row = 0; row < 4 * n; row++) {
      const i = row % n;
      let sum = 0;
      for (let j = 0; j < n; j++) {
        const weight = weights[row * n + j];
        sum += weight;
        if (j > i || i - j >= (window ?? n)) assert.equal(weight, 0);
      }
      assert.ok(Math.abs(sum - 1) < 1e-5, `row ${i} sums to ${sum}`);
    }
    const again = await engine.generate(prompt, { ...greedy, maxTokens: 20 }).result();
    assert.deepEqual(again.tokens, before.tokens);
  }
});
