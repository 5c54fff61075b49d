import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { describe, expect, it, vi } from 'vitest';

import { EngineClosedError, GenerationError, ModelError } from '../../bindings/ts/errors.js';
import { FakeWasm } from './fake-wasm-module.js';
import {
  collect,
  FakePlatform,
  fakeBuild,
  idle,
  loadFake,
  loadOn,
  modelFiles,
  rejection,
} from './harness.js';

const trap = (at: number) => (step: number) => {
  if (step >= at) throw new WebAssembly.RuntimeError('unreachable');
  return undefined;
};

const crashed = { name: 'EngineClosedError', code: 'crashed' };
const disposed = { name: 'EngineClosedError', code: 'disposed' };

describe('errors from WebAssembly', () => {
  it('cross the port as their classes, and leave the engine usable', async () => {
    const { engine, wasm } = await loadFake({
      onStep: step => (step === 3 ? { code: 'non-finite', message: 'NaN at 7' } : undefined),
    });
    const generation = engine.generate('a', { maxTokens: 9 });
    const error = await rejection(collect(generation));
    expect(error).toBeInstanceOf(GenerationError);
    expect(error).toMatchObject({ code: 'non-finite', message: 'NaN at 7' });
    expect(await rejection(generation.result())).toBe(error);
    expect(wasm.liveSequences).toBe(0);
    expect(await collect(engine.generate('a', { maxTokens: 9 }))).toHaveLength(9);
  });

  it('poison the engine when it traps, for every call now and later', async () => {
    const { engine, platform } = await loadFake({ onStep: trap(3) });
    const first = rejection(engine.generate('a').result());
    const second = rejection(collect(engine.generate('b')));
    expect(await first).toBeInstanceOf(EngineClosedError);
    expect(await first).toMatchObject({
      ...crashed,
      message: expect.stringMatching(/RuntimeError: unreachable/),
    });
    expect(await second).toMatchObject(crashed);
    expect(await rejection(engine.generate('c').result())).toMatchObject(crashed);
    expect(await rejection(engine.memory())).toMatchObject(crashed);
    expect(platform.alive).toBe(0);
    await engine.dispose();
  });

  it('say something even when a bare number is thrown (B107)', async () => {
    const { engine } = await loadFake({
      onStep: () => {
        throw 5243;
      },
    });
    expect(await rejection(engine.generate('a').result())).toMatchObject({
      message: expect.stringMatching(/5243/),
    });
  });

  it('take one engine only', async () => {
    const [broken, whole] = await Promise.all([loadFake({ onStep: trap(1) }), loadFake()]);
    expect(await rejection(broken.engine.generate('a').result())).toMatchObject(crashed);
    expect(await collect(whole.engine.generate('a', { maxTokens: 3 }))).toHaveLength(3);
  });
});

describe('the end of a worker', () => {
  it('rejects every call that waits', async () => {
    const { engine, platform } = await loadFake();
    const iterator = engine.generate('a')[Symbol.asyncIterator]();
    await iterator.next();
    const memory = rejection(engine.memory());
    const result = rejection(engine.generate('b').result());
    platform.fail('it exited with code 134');
    expect(await memory).toMatchObject({ ...crashed, message: expect.stringMatching(/code 134/) });
    expect(await result).toMatchObject(crashed);
    expect(await rejection(iterator.next())).toMatchObject(crashed);
  });

  it('is a failed load when it comes before its first word', async () => {
    const platform = new FakePlatform(new FakeWasm(), {
      createBuild: () => new Promise(() => {}),
    });
    const load = rejection(loadOn(platform, { ...modelFiles(), 'config.json': 'data:,' }));
    await idle(1);
    platform.fail('its script could not be loaded');
    const error = await load;
    expect(error).toBeInstanceOf(ModelError);
    expect(error).toMatchObject({
      code: 'load-failed',
      message: expect.stringMatching(/script could not be loaded/),
    });
    expect(platform.alive).toBe(0);
  });

  it('is a crash when loading traps', async () => {
    const wasm = new FakeWasm();
    vi.spyOn(wasm, 'HEAPU8', 'get').mockImplementation(() => {
      throw new WebAssembly.RuntimeError('memory access out of bounds');
    });
    const platform = new FakePlatform(wasm);
    expect(await rejection(loadOn(platform, modelFiles()))).toMatchObject(crashed);
    expect(platform.alive).toBe(0);
  });
});

describe('dispose', () => {
  it('leaves no worker behind, ten times (B113)', async () => {
    const createBuild = async () => fakeBuild(new FakeWasm());
    const platform = new FakePlatform(new FakeWasm(), { createBuild });
    for (let i = 0; i < 10; i++) {
      const engine = await loadOn(platform, modelFiles());
      expect(platform.alive).toBe(1);
      await engine.dispose();
      await engine.dispose();
    }
    expect(platform).toMatchObject({ spawned: 10, alive: 0 });
  });

  it('rejects what waits and what comes later', async () => {
    const { engine } = await loadFake();
    const generation = engine.generate('a');
    const loop = rejection(collect(generation));
    const early = engine.generate('b');
    await engine.dispose();
    expect(await loop).toMatchObject(disposed);
    expect(await rejection(generation.result())).toMatchObject(disposed);
    expect(await rejection(early.result())).toMatchObject(disposed);
    expect(await rejection(engine.generate('c').result())).toMatchObject(disposed);
    expect(await rejection(engine.memory())).toMatchObject(disposed);
  });

  it('happens at the end of a block with await using', async () => {
    const { engine, platform } = await loadFake();
    {
      await using scoped = engine;
      expect(scoped.info.variant).toBe('simd');
    }
    expect(platform.alive).toBe(0);
  });

  it('lets two loads at once settle each for itself (B60)', async () => {
    const platform = new FakePlatform(new FakeWasm());
    const [a, b] = await Promise.all([
      loadOn(platform, modelFiles()),
      loadOn(new FakePlatform(new FakeWasm()), modelFiles()),
    ]);
    await a.dispose();
    expect(await collect(b.generate('a', { maxTokens: 2 }))).toHaveLength(2);
  });
});

describe('the process', () => {
  it('is kept alive only while somebody waits', async () => {
    const { engine, platform } = await loadFake();
    await idle(1);
    expect(platform.busy).toBe(false);
    const generation = engine.generate('a', { maxTokens: 100 });
    const iterator = generation[Symbol.asyncIterator]();
    const next = iterator.next();
    expect(platform.busy).toBe(true);
    await next;
    await idle(1);
    expect(platform.busy).toBe(false);
    const result = generation.result();
    expect(platform.busy).toBe(true);
    await result;
    await idle(1);
    expect(platform.busy).toBe(false);
  });

  it('sees no unhandled rejection from what nobody looks at', async () => {
    const seen: unknown[] = [];
    const note = (error: unknown) => seen.push(error);
    process.on('unhandledRejection', note);
    const { engine } = await loadFake({ onStep: trap(2) });
    void engine.generate('').result();
    void engine.generate('a', { signal: AbortSignal.abort() }).result();
    void engine.generate('b')[Symbol.asyncIterator]().next();
    void engine.generate('c').result();
    await idle(50);
    void engine.generate('d').result();
    await idle();
    process.off('unhandledRejection', note);
    expect(seen).toEqual([]);
  });
});

describe('an engine that nobody has any more', () => {
  setFlagsFromString('--expose-gc');
  const collectGarbage = runInNewContext('gc') as () => void;
  const patience = { timeout: 30_000 };

  it('ends, but not before its last run and call', async () => {
    const platform = new FakePlatform(new FakeWasm());
    const use = async () => {
      const load = async () => (await loadOn(platform, modelFiles())).session();
      const run = (await load()).generate('Once', { maxTokens: 100 });
      const iterator = run[Symbol.asyncIterator]();
      await iterator.next();
      for (let i = 0; i < 5; i++) {
        collectGarbage();
        await idle(5);
      }
      let tokens = 1;
      while (!(await iterator.next()).done) tokens++;
      return tokens;
    };
    expect(await use()).toBe(100);
    expect(platform.spawned).toBe(1);
    const alive = () => {
      collectGarbage();
      return platform.alive;
    };
    await expect.poll(alive, patience).toBe(0);
  });

  it('answers the calls that wait', async () => {
    const platform = new FakePlatform(new FakeWasm());
    const ask = async () => (await loadOn(platform, modelFiles())).memory();
    expect((await ask()).weights).toBeGreaterThan(0);
    const alive = () => {
      collectGarbage();
      return platform.alive;
    };
    await expect.poll(alive, patience).toBe(0);
  });
});
