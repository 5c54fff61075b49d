// The cache of the WebAssembly build: batches, reused prefixes, windows without end, saved states.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { randomModel } from './random-model.mjs';
import {
  append,
  check,
  instantiate,
  kvDtypes,
  load,
  logitBytes,
  nextToken,
  start,
  started,
  stepEvents,
  strategies,
} from './wasm-build.mjs';

const module = await instantiate();
const shape = { nLayer: 2, nHead: 4, nKvHead: 2, nEmbd: 64, nPositions: 256, vocabSize: 300 };
const model = await randomModel(shape);
const engineWith = options => load(module, model.config, model.weights, options);

const idsOf = (length, seed) => Array.from({ length }, (_, i) => (i * i * 31 + seed * 17) % 300);

/** The logits that each of `count` tokens was drawn from, in an engine of its own. */
function coldLogits(prompt, count, { window, kvDtype } = {}) {
  const engine = engineWith({
    prefixCache: false,
    ...(window && { window }),
    ...(kvDtype && { kvDtype }),
  });
  const sequence = start(engine, prompt, { cache: strategies.none });
  const logits = Array.from({ length: count }, () => {
    nextToken(engine, sequence);
    return logitBytes(sequence);
  });
  sequence.delete();
  engine.delete();
  return logits;
}

function assertSame(actual, expected) {
  assert.equal(actual.length, expected.length);
  for (const [i, bytes] of actual.entries()) {
    assert.equal(Buffer.compare(bytes, expected[i]), 0, `token ${i}`);
  }
}

for (const [name, kvDtype] of Object.entries(kvDtypes)) {
  test(`a dozen sequences at once have the bits that each has alone, with ${name}`, () => {
    const count = 20;
    const prompts = Array.from({ length: 12 }, (_, i) => idsOf(5 + 9 * i, i));
    const options = { kvDtype, window: 50 };
    const perBlock = engineWith({ kvDtype, kvBytes: 1e6 });
    const kvBytes = 200 * 16 * perBlock.memory().kvPerToken;
    perBlock.delete();
    const engine = engineWith({ ...options, kvBytes });
    const sequences = prompts.map(prompt => start(engine, prompt));
    const drawn = new Map(sequences.map(sequence => [sequence.id(), []]));
    let widest = 0;
    while ([...drawn.values()].some(logits => logits.length < count)) {
      const tokens = stepEvents(engine).filter(({ kind }) => kind === 'token');
      widest = Math.max(widest, tokens.length);
      for (const { id } of tokens) {
        const sequence = sequences.find(candidate => candidate.id() === id);
        drawn.get(id).push(logitBytes(sequence));
        sequence.setPaused(drawn.get(id).length === count);
      }
    }
    assert.ok(widest >= 8, `at most ${widest} in a batch`);
    for (const [i, sequence] of sequences.entries()) {
      assertSame(drawn.get(sequence.id()), coldLogits(prompts[i], count, options));
      sequence.delete();
    }
    engine.delete();
  });

  test(`a reused prefix gives the bits of a cold run, with ${name}`, () => {
    const engine = engineWith({ kvDtype });
    const shared = idsOf(100, 1);
    for (const tail of [idsOf(30, 2), idsOf(40, 3), idsOf(1, 4), idsOf(40, 3)]) {
      const prompt = [...shared, ...tail];
      const sequence = start(engine, prompt);
      const logits = Array.from({ length: 10 }, () => {
        nextToken(engine, sequence);
        return logitBytes(sequence);
      });
      assertSame(logits, coldLogits(prompt, 10, { kvDtype }));
      sequence.delete();
    }
    const { lookups, hits, tokensReused } = engine.prefixStats();
    assert.equal(lookups, 4);
    assert.equal(hits, 3);
    assert.ok(tokensReused >= 2 * 96 + 139, `${tokensReused} tokens were reused`);
    engine.delete();
  });
}

test('growing prompts reuse all that was before (B57)', () => {
  const engine = engineWith();
  const ids = idsOf(34, 5);
  const reused = [14, 24, 34].map(length => {
    const sequence = start(engine, ids.slice(0, length));
    nextToken(engine, sequence);
    const count = sequence.reused();
    sequence.delete();
    return count;
  });
  assert.equal(reused[0], 0);
  assert.ok(reused[1] >= 14, `${reused}`);
  assert.ok(reused[2] >= 24, `${reused}`);
  engine.delete();
});

test('the same prompt five times over gives the same tokens (B58)', () => {
  const engine = engineWith();
  const runs = Array.from({ length: 5 }, () => {
    const sequence = start(engine, idsOf(3, 6));
    const tokens = Array.from({ length: 30 }, () => nextToken(engine, sequence));
    sequence.delete();
    return tokens.join();
  });
  assert.equal(new Set(runs).size, 1);
  engine.delete();
});

test('a window and shifts go on for 25,000 tokens in the memory that there is', async () => {
  const small = await randomModel({ ...shape, nLayer: 1, nEmbd: 32, nInner: 32 });
  const engine = load(module, small.config, small.weights, { window: 48, kvDtype: kvDtypes.f16 });
  const sequence = start(engine, idsOf(20, 7), {
    shift: true,
    nKeep: 4,
    temperature: 1,
    seedLow: 9,
  });
  const before = { heap: module.HEAPU8.length, reserved: engine.memory().kvReserved };
  for (let i = 0; i < 25_000; i++) nextToken(engine, sequence);
  const { kvReserved, kvUsed } = engine.memory();
  assert.deepEqual({ heap: module.HEAPU8.length, reserved: kvReserved }, before);
  assert.ok(kvUsed <= kvReserved);
  assert.deepEqual(Array.from(sequence.ids().slice(0, 4)), idsOf(4, 7));
  sequence.delete();
  engine.delete();
});

test('what a shift keeps goes on as a cold run on those ids', () => {
  const engine = engineWith();
  const sequence = start(engine, idsOf(250, 8), { shift: true, nKeep: 10 });
  do nextToken(engine, sequence);
  while (sequence.ids().length > 250);
  const kept = Array.from(sequence.ids().slice(0, -1));
  assert.equal(kept.length, 128);
  assert.deepEqual(kept.slice(0, 10), idsOf(10, 8));
  const cold = engineWith({ prefixCache: false });
  const again = start(cold, kept);
  for (let i = 0; i < 5; i++) {
    if (i > 0) nextToken(engine, sequence);
    nextToken(cold, again);
    assert.equal(Buffer.compare(logitBytes(sequence), logitBytes(again)), 0, `token ${i}`);
  }
  for (const s of [sequence, again]) s.delete();
  for (const e of [engine, cold]) e.delete();
});

test('a saved sequence goes on in another instance, with the same bits', async () => {
  const elsewhere = await instantiate();
  for (const options of [{}, { window: 40 }, { kvDtype: kvDtypes.q8 }]) {
    const engine = engineWith(options);
    const sequence = start(engine, idsOf(60, 9));
    for (let i = 0; i < 5; i++) nextToken(engine, sequence);
    check(sequence.save());
    const bytes = sequence.takeSaved();
    const other = load(elsewhere, model.config, model.weights, options);
    const restored = started(other.restoreSequence(bytes));
    assert.deepEqual(restored.ids(), sequence.ids());
    for (const s of [sequence, restored]) append(s, [1, 2, 3]);
    restored.setPaused(false);
    assert.equal(restored.reused(), sequence.reused());
    assert.equal(restored.reused(), 64);
    for (let i = 0; i < 10; i++) {
      nextToken(engine, sequence);
      nextToken(other, restored);
      assert.equal(Buffer.compare(logitBytes(restored), logitBytes(sequence)), 0, `token ${i}`);
    }
    for (const s of [sequence, restored]) s.delete();
    for (const e of [engine, other]) e.delete();
  }
});

test('a saved state that is damaged, or of another model, is refused', async () => {
  const engine = engineWith();
  const sequence = start(engine, idsOf(40, 10));
  nextToken(engine, sequence);
  check(sequence.save());
  const bytes = sequence.takeSaved();
  const refusal = /^Error: invalid-argument: the saved state /;
  const refused = (target, state) => {
    assert.throws(() => started(target.restoreSequence(state)), refusal);
  };
  for (let at = 0; at < bytes.length; at += 97) {
    const damaged = bytes.slice();
    damaged[at] ^= 0x10;
    refused(engine, damaged);
    refused(engine, bytes.subarray(0, at));
  }
  refused(engine, Uint8Array.from([...bytes, 0]));
  const foreign = await randomModel({ ...shape, seed: 2 });
  for (const other of [
    load(module, foreign.config, foreign.weights),
    engineWith({ window: 20 }),
    engineWith({ kvDtype: kvDtypes.f16 }),
  ]) {
    refused(other, bytes);
    other.delete();
  }
  started(engine.restoreSequence(bytes)).delete();
  sequence.delete();
  engine.delete();
});

test('the view of the cache accounts for every block', () => {
  const engine = engineWith();
  const sequence = start(engine, idsOf(40, 11));
  nextToken(engine, sequence);
  const fork = started(sequence.fork());
  fork.setPaused(false);
  for (let i = 0; i < 3; i++) nextToken(engine, sequence);
  const numbers = Array.from(engine.cacheView());
  const [blocks, blockTokens, copies] = numbers;
  assert.deepEqual([blocks, blockTokens, copies], [16, 16, 1]);
  const refs = Array.from({ length: blocks }, (_, b) => numbers[3 + 3 * b]);
  const inTree = Array.from({ length: blocks }, (_, b) => (numbers[4 + 3 * b] > 0 ? 1 : 0));
  let at = 3 + 3 * blocks;
  const held = new Array(blocks).fill(0);
  const sequences = numbers[at++];
  assert.equal(sequences, 2);
  for (let s = 0; s < sequences; s++) {
    const [, tokens, size] = numbers.slice(at, at + 3);
    assert.equal(tokens, 43);
    for (const block of numbers.slice(at + 3, at + 3 + size)) if (block >= 0) held[block]++;
    at += 3 + size;
  }
  assert.equal(at, numbers.length);
  assert.deepEqual(
    refs,
    held.map((count, b) => count + inTree[b]),
  );
  // Two full blocks of the prompt, held by both.
  assert.equal(refs.filter(count => count === 3).length, 2);
  const { kvPerToken, kvShared, kvTokens } = engine.memory();
  assert.equal(kvTokens, 2 * 43);
  assert.equal(kvShared, 2 * 16 * kvPerToken);
  for (const s of [sequence, fork]) s.delete();
  engine.delete();
});

test('the view says how full the blocks are that only the prefix tree holds', () => {
  const engine = engineWith();
  const sequence = start(engine, idsOf(40, 11));
  nextToken(engine, sequence);
  nextToken(engine, sequence);
  sequence.delete();
  const [blocks, , , ...numbers] = engine.cacheView();
  const known = Array.from({ length: blocks }, (_, b) => numbers[3 * b + 1]);
  // 41 are computed: the last token drawn is not.
  assert.deepEqual(
    known.filter(tokens => tokens > 0).sort((a, b) => a - b),
    [9, 16, 16],
  );
  engine.delete();
});
