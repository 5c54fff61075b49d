import { describe, expect, it } from 'vitest';

import { GenerationError } from '../../bindings/ts/errors.js';
import { chunksAhead } from '../../bindings/ts/protocol.js';
import { collect, endOfText, idle, loadFake, rejection } from './harness.js';

describe('runs at once', () => {
  it('are computed together, each with the tokens that it has alone (B60)', async () => {
    const prompts = Array.from({ length: 70 }, (_, i) => `prompt ${i}`);
    const options = { maxTokens: 40, temperature: 0 };
    const { engine: single } = await loadFake();
    const alone: Int32Array[] = [];
    for (const prompt of prompts) {
      alone.push((await single.generate(prompt, options).result()).tokens);
    }
    const { engine, wasm } = await loadFake();
    const results = await Promise.all(
      prompts.map(prompt => engine.generate(prompt, options).result()),
    );
    expect(results.map(({ tokens }) => tokens)).toEqual(alone);
    expect(wasm.widest).toBeGreaterThanOrEqual(8);
    expect(wasm.liveSequences).toBe(0);
  });

  it('go on while the consumer of one is behind', async () => {
    const { engine, wasm } = await loadFake();
    const slow = engine.generate('slow')[Symbol.asyncIterator]();
    await slow.next();
    expect((await engine.generate('fast', { maxTokens: 100 }).result()).tokens).toHaveLength(100);
    const steps = wasm.steps;
    await idle(60);
    expect(wasm.steps).toBe(steps);
    expect(wasm.liveSequences).toBe(1);
    expect(await collect(slow)).toHaveLength(124);
  });

  it('wait without a step while all of them are too far ahead', async () => {
    const { engine, wasm } = await loadFake();
    const iterators = ['a', 'b', 'c'].map(p => engine.generate(p)[Symbol.asyncIterator]());
    await Promise.all(iterators.map(iterator => iterator.next()));
    await idle(60);
    const steps = wasm.steps;
    expect(steps).toBeLessThan(chunksAhead + 10);
    await idle(60);
    expect(wasm.steps).toBe(steps);
    for (const iterator of iterators) expect(await collect(iterator)).toHaveLength(127);
  });

  it('fail alone when theirs is the sequence that fails', async () => {
    const { engine, wasm } = await loadFake({
      onStep: step => (step === 9 ? { code: 'out-of-memory', message: 'no room' } : undefined),
    });
    const oldest = rejection(engine.generate('a', { maxTokens: 50 }).result());
    const other = engine.generate('b', { maxTokens: 50 }).result();
    expect(await oldest).toMatchObject({ code: 'out-of-memory', message: 'no room' });
    expect((await other).tokens).toHaveLength(50);
    expect(wasm.liveSequences).toBe(0);
  });

  it('fail rather than wait for ever when the engine computes nothing', async () => {
    const { engine, wasm } = await loadFake({ stalls: true });
    const errors = await Promise.all(
      ['a', 'b'].map(prompt => rejection(engine.generate(prompt).result())),
    );
    for (const error of errors) expect(error).toMatchObject({ code: 'internal' });
    expect(errors[0]).toBeInstanceOf(GenerationError);
    expect(wasm.steps).toBe(1);
    expect(wasm.liveSequences).toBe(0);
  });
});

describe('earlier prompts', () => {
  it('are reused as far as they go, growing prompt after growing prompt (B57)', async () => {
    const { engine } = await loadFake();
    const ids = Array.from({ length: 34 }, (_, i) => (i * 7) % 250);
    const cached: number[] = [];
    for (const length of [14, 24, 34]) {
      const { usage } = await engine.generate(ids.slice(0, length), { maxTokens: 1 }).result();
      expect(usage.prompt).toBe(length);
      cached.push(usage.cached);
    }
    expect(cached[0]).toBe(0);
    expect(cached[1]).toBeGreaterThanOrEqual(14);
    expect(cached[2]).toBeGreaterThanOrEqual(24);
    const { prefix } = await engine.memory();
    expect(prefix).toMatchObject({ lookups: 3, hits: 2, tokensReused: 14 + 24 });
  });

  it('do not bleed into the same one sent again (B58)', async () => {
    const { engine } = await loadFake();
    const texts = new Set<string>();
    for (let i = 0; i < 5; i++) {
      texts.add((await engine.generate('Hi!', { maxTokens: 20, temperature: 0 }).result()).text);
    }
    expect(texts.size).toBe(1);
  });

  it('are left alone by a run or an engine that is told to', async () => {
    const { engine } = await loadFake();
    const run = (reusePrefix: boolean) =>
      engine.generate('Once upon', { maxTokens: 1, reusePrefix }).result();
    await run(true);
    expect((await run(false)).usage.cached).toBe(0);
    expect((await run(true)).usage.cached).toBe(8);
    const without = await loadFake({}, { prefixCache: false });
    for (let i = 0; i < 2; i++) {
      const { usage } = await without.engine.generate('Once', { maxTokens: 1 }).result();
      expect(usage.cached).toBe(0);
    }
  });
});

describe('at the end of the context', () => {
  const load = () => loadFake({ config: { nPositions: 16 } });

  it("'stop' ends by length", async () => {
    const { engine } = await load();
    const result = await engine.generate('0123456789', { overflow: 'stop' }).result();
    expect(result).toMatchObject({ finishReason: 'length', usage: { completion: 7 } });
  });

  it("'error' fails after the last token that fits", async () => {
    const { engine, wasm } = await load();
    const generation = engine.generate('0123456789', { overflow: 'error' });
    const seen: number[] = [];
    const loop = async () => {
      for await (const { token } of generation) seen.push(token);
    };
    const error = await rejection(loop());
    expect(error).toBeInstanceOf(GenerationError);
    expect(error).toMatchObject({
      code: 'context-full',
      message: 'The context of 16 tokens is full.',
    });
    expect(seen).toHaveLength(7);
    expect(await rejection(generation.result())).toBe(error);
    expect(wasm.liveSequences).toBe(0);
    const enough = { overflow: 'error', maxTokens: 7 } as const;
    const { finishReason } = await engine.generate('0123456789', enough).result();
    expect(finishReason).toBe('length');
  });

  it("'shift' goes on, to maxTokens or a stop token", async () => {
    const { engine, wasm } = await loadFake({
      config: { nPositions: 16 },
      nextToken: ids => (ids.length === 90 ? endOfText : 65),
    });
    const options = { overflow: 'shift', nKeep: 3 } as const;
    const some = await engine.generate('0123456789', { ...options, maxTokens: 40 }).result();
    expect(some.tokens).toHaveLength(40);
    const all = await engine.generate('0123456789', options).result();
    expect(all).toMatchObject({ finishReason: 'stop', usage: { completion: 80 } });
    expect(wasm.sequenceOptions[0]).toMatchObject({ shift: true, nKeep: 3 });
  });
});
