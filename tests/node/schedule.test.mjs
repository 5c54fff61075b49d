// Random schedules in the WebAssembly build: sequences that start, step, fork, roll back, go on, pause, are
// saved and dropped, in a pool that is often too small for all of them. Each row of logits must have the
// bits that a cold, uncached sequence of another engine has for the same ids. fast-check shrinks and prints
// a schedule that fails. tests/native/schedule_test.cc runs many more of them.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { randomModel } from './random-model.mjs';
import {
  append,
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
const vocabSize = 260;
const blockTokens = 16;

const worlds = fc.record({
  seed: fc.nat(),
  nLayer: fc.integer({ min: 1, max: 2 }),
  nKvHead: fc.integer({ min: 1, max: 2 }),
  group: fc.integer({ min: 1, max: 2 }),
  headDim: fc.integer({ min: 1, max: 20 }),
  nPositions: fc.integer({ min: 2, max: 70 }),
  window: fc.oneof(fc.constant(0), fc.integer({ min: 1, max: 70 })),
  kvDtype: fc.constantFrom(...Object.values(kvDtypes)),
  blocks: fc.integer({ min: 1, max: 12 }),
  prefixCache: fc.boolean(),
  prefillChunk: fc.integer({ min: 1, max: 24 }),
});

const ids = fc.array(fc.nat(vocabSize - 1), { maxLength: 12 });
const which = fc.nat(20);
const options = fc.record({
  cache: fc.oneof(
    { weight: 6, arbitrary: fc.constant(strategies.block) },
    { weight: 1, arbitrary: fc.constantFrom(strategies.concat, strategies.none) },
  ),
  temperature: fc.constantFrom(0, 1),
  seedLow: fc.nat(),
  shift: fc.boolean(),
  keep: fc.nat(34),
  reusePrefix: fc.boolean(),
  promptLogprobs: fc.constantFrom(-1, 0, 2),
});
const operation = fc.oneof(
  { weight: 8, arbitrary: fc.record({ kind: fc.constant('step'), count: fc.nat(11) }) },
  {
    weight: 4,
    arbitrary: fc.record({
      kind: fc.constant('start'),
      stem: fc.nat(1),
      shared: fc.nat(60),
      ids,
      options,
    }),
  },
  ...['fork', 'drop', 'saveAndRestore'].map(kind => ({
    weight: 1,
    arbitrary: fc.record({ kind: fc.constant(kind), which }),
  })),
  {
    weight: 1,
    arbitrary: fc.record({ kind: fc.constant('truncate'), which, part: fc.nat(100) }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('append'), which, ids, options }) },
  {
    weight: 1,
    arbitrary: fc.record({ kind: fc.constant('pause'), which, paused: fc.boolean() }),
  },
);

class World {
  #engine;
  #reference;
  #context;
  #expected = new Map();
  #sequences = [];
  compared = 0;
  reused = 0;

  static async make({ group, headDim, blocks, window, kvDtype, ...world }) {
    const nHead = world.nKvHead * group;
    const shape = { ...world, nHead, nEmbd: nHead * headDim, nInner: 12, vocabSize };
    const { config, weights } = await randomModel(shape);
    const reference = load(module, config, weights, { window, kvDtype, prefixCache: false });
    const kvBytes = blocks * blockTokens * reference.memory().kvPerToken;
    const { prefixCache, prefillChunk } = world;
    const options = { window, kvDtype, kvBytes, prefixCache, prefillChunk };
    return new World(load(module, config, weights, options), reference, world.nPositions);
  }

  constructor(engine, reference, context) {
    this.#engine = engine;
    this.#reference = reference;
    this.#context = context;
  }

  run(operations) {
    for (const { kind, which = 0, ...operation } of operations) {
      const sequence = this.#sequences[which % Math.max(1, this.#sequences.length)];
      if (sequence || kind === 'start') this[kind](operation, sequence);
    }
    for (const sequence of this.#sequences) sequence.setPaused(false);
    this.step({ count: 20 });
    while (this.#sequences.length > 0) this.drop({}, this.#sequences[0]);
    this.#checkPool();
  }

  delete() {
    this.#engine.delete();
    this.#reference.delete();
  }

  start({ stem, shared, ids, options }) {
    const stemIds = Array.from({ length: shared }, (_, i) => (i * 37 + stem * 11) % vocabSize);
    const prompt = [...stemIds, ...ids].slice(0, this.#context);
    if (prompt.length === 0) return;
    this.#try(['out-of-memory'], () => {
      this.#sequences.push(start(this.#engine, prompt, this.#options(options)));
    });
  }

  step({ count }) {
    for (let i = 0; i <= count; i++) {
      const before = new Map(this.#sequences.map(s => [s.id(), Array.from(s.ids())]));
      for (const { id, kind, token } of stepEvents(this.#engine)) {
        const sequence = this.#sequences.find(candidate => candidate.id() === id);
        if (kind === 'failed') this.#checkFailure(sequence);
        if (kind === 'token') this.#checkDraw(sequence, before.get(id), token);
      }
    }
  }

  fork(_, sequence) {
    this.#try(['invalid-argument', 'out-of-memory'], () => {
      this.#sequences.push(started(sequence.fork()));
    });
  }

  truncate({ part }, sequence) {
    const size = Math.floor((sequence.ids().length * part) / 100);
    const kept = Array.from(sequence.ids()).slice(0, size);
    assert.equal(sequence.truncate(size).code, '');
    assert.deepEqual(Array.from(sequence.ids()), kept);
  }

  append({ ids, options }, sequence) {
    const before = Array.from(sequence.ids());
    this.#try(['context-full', 'invalid-argument', 'out-of-memory'], () => {
      append(sequence, ids, this.#options(options));
      before.push(...ids);
    });
    assert.deepEqual(Array.from(sequence.ids()), before);
  }

  pause({ paused }, sequence) {
    sequence.setPaused(paused);
  }

  saveAndRestore(_, sequence) {
    if (sequence.save().code !== '') return;
    const bytes = sequence.takeSaved();
    this.#try(['out-of-memory', 'context-full'], () => {
      this.#sequences.push(started(this.#engine.restoreSequence(bytes)));
    });
  }

  drop(_, sequence) {
    this.#sequences = this.#sequences.filter(other => other !== sequence);
    sequence.delete();
  }

  #options({ keep, ...options }) {
    return { ...options, nKeep: keep % Math.max(Math.floor(this.#context / 2), 1) };
  }

  #try(codes, action) {
    try {
      action();
    } catch (error) {
      const code = error.message.split(':')[0];
      if (!codes.includes(code)) throw error;
    }
  }

  #checkDraw(sequence, before, token) {
    const ids = Array.from(sequence.ids());
    assert.equal(ids.pop(), token);
    // A shift replaces the ids, when the context is full and not before.
    if (before.length <= this.#context) assert.deepEqual(ids, before);
    assert.equal(Buffer.compare(logitBytes(sequence), this.#coldLogits(ids)), 0, 'other bits');
    this.compared++;
    if (sequence.reused() > 0) this.reused++;
  }

  /** Only a full context, and what does not fit even alone, may fail. */
  #checkFailure(sequence) {
    const { code, message } = sequence.status();
    const blocks = Math.ceil(sequence.ids().length / blockTokens);
    const [poolBlocks] = this.#engine.cacheView();
    const isFull = code === 'context-full' && sequence.remaining() <= 0;
    const isLarge = code === 'out-of-memory' && blocks > poolBlocks;
    assert.ok(isFull || isLarge, `${code}: ${message}`);
    this.drop({}, sequence);
  }

  #coldLogits(ids) {
    const key = ids.join();
    let bytes = this.#expected.get(key);
    if (!bytes) {
      const sequence = start(this.#reference, ids, { cache: strategies.none });
      nextToken(this.#reference, sequence);
      bytes = logitBytes(sequence);
      sequence.delete();
      this.#expected.set(key, bytes);
    }
    return bytes;
  }

  #checkPool() {
    const [blocks, , , ...numbers] = this.#engine.cacheView();
    for (let at = 0; at < 3 * blocks; at += 3) {
      const inTree = numbers[at + 1] > 0 ? 1 : 0;
      assert.equal(numbers[at], inTree, `block ${at / 3} is held by nobody known`);
    }
    const { kvUsed, kvShared } = this.#engine.memory();
    assert.deepEqual({ kvUsed, kvShared }, { kvUsed: 0, kvShared: 0 });
  }
}

test('any schedule gives the bits of a cold sequence without a cache', async () => {
  let compared = 0;
  let reused = 0;
  const operations = fc.array(operation, { minLength: 3, maxLength: 25, size: 'max' });
  await fc.assert(
    fc.asyncProperty(worlds, operations, async (shape, schedule) => {
      const world = await World.make(shape);
      try {
        world.run(schedule);
      } finally {
        world.delete();
      }
      compared += world.compared;
      reused += world.reused;
    }),
    { numRuns: 400, includeErrorInReport: true },
  );
  // Lest it pass by doing nothing.
  assert.ok(compared > 4000, `${compared} rows of logits were compared`);
  assert.ok(reused > 100, `${reused} rows came after a reused prefix`);
});
