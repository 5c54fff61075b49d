import { describe, expect, it, vi } from 'vitest';
import type { BaseEngine } from '../../bindings/ts/engine.js';
import { chunksAhead } from '../../bindings/ts/protocol.js';
import { collect, idle, loadFake, rejection } from './harness.js';

const reason = new Error('the user pressed stop');

async function tokensOf(engine: BaseEngine): Promise<number[]> {
  return Array.from((await engine.generate('next', { maxTokens: 10, seed: 5 }).result()).tokens);
}

describe('cancelling a generation', () => {
  it('aborts between tokens, with the reason of the signal, and runs on afterwards (B115)', async () => {
    const { engine, wasm } = await loadFake();
    const cold = await tokensOf((await loadFake()).engine);
    const controller = new AbortController();
    const generation = engine.generate('Once', { signal: controller.signal });
    const result = rejection(generation.result());
    let seen = 0;
    const loop = async () => {
      for await (const _ of generation) if (++seen === 3) controller.abort(reason);
    };
    expect(await rejection(loop())).toBe(reason);
    expect(seen).toBe(3);
    expect(await result).toBe(reason);
    expect(await tokensOf(engine)).toEqual(cold);
    expect(wasm.liveSequences).toBe(0);
  });

  it('aborts between chunks of the prompt', async () => {
    const controller = new AbortController();
    const { engine, wasm } = await loadFake({
      prefillChunk: 1,
      onStep: step => {
        if (step === 5) controller.abort(reason);
        return undefined;
      },
    });
    const generation = engine.generate('x'.repeat(100), { signal: controller.signal });
    expect(await rejection(collect(generation))).toBe(reason);
    await tokensOf(engine);
    expect(wasm.steps).toBeLessThan(5 + 5 + 4 + 10);
  });

  it('does not start when the signal is aborted already', async () => {
    const { engine, wasm } = await loadFake();
    const generation = engine.generate('a', { signal: AbortSignal.abort(reason) });
    expect(await rejection(collect(generation))).toBe(reason);
    expect(await rejection(generation.result())).toBe(reason);
    await idle();
    expect(wasm.steps).toBe(0);
  });

  it('drops one of several runs, and leaves the others alone', async () => {
    const { engine, wasm } = await loadFake();
    const controller = new AbortController();
    const first = engine.generate('first', { maxTokens: 50 }).result();
    const second = engine.generate('second', { signal: controller.signal }).result();
    const third = engine.generate('third', { maxTokens: 2 }).result();
    controller.abort(reason);
    expect(await rejection(second)).toBe(reason);
    expect((await first).tokens).toHaveLength(50);
    expect((await third).tokens).toHaveLength(2);
    expect(wasm.liveSequences).toBe(0);
  });

  it('forgets the signal after the end', async () => {
    const { engine } = await loadFake();
    const controller = new AbortController();
    const generation = engine.generate('a', { maxTokens: 3, signal: controller.signal });
    const forgotten = vi.spyOn(controller.signal, 'removeEventListener');
    const result = await generation.result();
    expect(forgotten).toHaveBeenCalledOnce();
    controller.abort(reason);
    expect(await generation.result()).toBe(result);
    expect(await collect(generation)).toHaveLength(3);
  });

  it('frees the sequence when the loop is left (B115)', async () => {
    const { engine, wasm } = await loadFake();
    const cold = await tokensOf((await loadFake()).engine);
    const generation = engine.generate('Once');
    let seen = 0;
    for await (const _ of generation) if (++seen === 3) break;
    expect(await rejection(generation.result())).toMatchObject({ name: 'AbortError' });
    expect(await tokensOf(engine)).toEqual(cold);
    expect(wasm.liveSequences).toBe(0);
  });

  it('ends all calls of next when the iterator is returned', async () => {
    const { engine, wasm } = await loadFake();
    const iterator = engine.generate('Once')[Symbol.asyncIterator]();
    const waiting = iterator.next();
    await iterator.return?.();
    expect(await waiting).toEqual({ done: true, value: undefined });
    expect(await iterator.next()).toEqual({ done: true, value: undefined });
    await idle();
    expect(wasm.liveSequences).toBe(0);
  });

  it('computes nothing for an iterator that is returned before its first next', async () => {
    const { engine, wasm } = await loadFake();
    const iterator = engine.generate('Once')[Symbol.asyncIterator]();
    await iterator.return?.();
    expect(await iterator.next()).toEqual({ done: true, value: undefined });
    await idle();
    expect(wasm.steps).toBe(0);
  });

  it('keeps a result that is complete when the loop is left', async () => {
    const { engine } = await loadFake();
    const generation = engine.generate('Once', { maxTokens: 4 });
    const result = await generation.result();
    for await (const _ of generation) break;
    expect(await generation.result()).toBe(result);
  });
});

describe('back-pressure', () => {
  it('runs a bounded number of chunks ahead, and pauses there', async () => {
    const { engine, wasm } = await loadFake();
    const iterator = engine.generate('abcd')[Symbol.asyncIterator]();
    await iterator.next();
    await idle(60);
    expect(wasm.steps).toBe(chunksAhead);
    for (let i = 1; i < 40; i++) await iterator.next();
    await idle(60);
    expect(wasm.steps).toBeGreaterThan(chunksAhead);
    expect(wasm.steps).toBeLessThanOrEqual(chunksAhead + 40);
    expect(await collect(iterator)).toHaveLength(125 - 40);
  });

  it('computes nothing before somebody asks', async () => {
    const { engine, wasm } = await loadFake();
    engine.generate('abcd');
    await idle();
    expect(wasm.steps).toBe(0);
  });

  it('goes on to the end for a result', async () => {
    const { engine } = await loadFake();
    const generation = engine.generate('abcd');
    await generation[Symbol.asyncIterator]().next();
    await idle(60);
    expect((await generation.result()).tokens).toHaveLength(125);
  });

  it('does not hold up a run beside it', async () => {
    const { engine } = await loadFake();
    const outer = engine.generate('outer')[Symbol.asyncIterator]();
    await outer.next();
    await idle(60);
    expect(await collect(engine.generate('inner', { maxTokens: 5 }))).toHaveLength(5);
    expect(await collect(outer)).toHaveLength(123);
  });

  it('stays as it is when a run beside it is cancelled', async () => {
    const { engine, wasm } = await loadFake();
    await engine.generate('abcd')[Symbol.asyncIterator]().next();
    await idle(60);
    const controller = new AbortController();
    const behind = engine.generate('inner', { signal: controller.signal }).result();
    controller.abort(reason);
    expect(await rejection(behind)).toBe(reason);
    await idle(60);
    expect(wasm.steps).toBeLessThan(chunksAhead + 10);
  });

  it('is aborted while it pauses', async () => {
    const { engine, wasm } = await loadFake();
    const controller = new AbortController();
    const iterator = engine.generate('a', { signal: controller.signal })[Symbol.asyncIterator]();
    await iterator.next();
    await idle(60);
    controller.abort(reason);
    expect(await rejection(iterator.next())).toBe(reason);
    await idle();
    expect(wasm.liveSequences).toBe(0);
  });
});
