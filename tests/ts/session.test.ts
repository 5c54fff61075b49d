import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { describe, expect, it } from 'vitest';

import { GenerationError, InvalidArgumentError } from '../../bindings/ts/errors.js';
import type { Session } from '../../bindings/ts/types.js';
import { collect, endOfText, idle, loadFake, rejection } from './harness.js';

const disposed = { name: 'EngineClosedError', code: 'disposed' };
const text = (ids: Int32Array) => String.fromCharCode(...ids);

describe('a session', () => {
  it('keeps its context, and computes what is new', async () => {
    const { engine, wasm } = await loadFake();
    await using chat = engine.session();
    expect(await chat.ids()).toEqual(new Int32Array());
    const options = { maxTokens: 5, temperature: 0 };
    const first = await chat.generate('Once upon', options).result();
    expect(first.usage).toEqual({ prompt: 9, cached: 0, completion: 5 });
    expect(text(await chat.ids())).toBe(`Once upon${first.text}`);
    const second = await chat.generate(' a time', options).result();
    // The last token drawn was not computed.
    expect(second.usage).toEqual({ prompt: 21, cached: 13, completion: 5 });
    const whole = `Once upon${first.text} a time`;
    expect(text(await chat.ids())).toBe(whole + second.text);
    const cold = await loadFake();
    expect((await cold.engine.generate(whole, options).result()).text).toBe(second.text);
    expect(wasm.liveSequences).toBe(1);
    await chat.dispose();
    await engine.memory();
    expect(wasm.liveSequences).toBe(0);
  });

  it('does not keep a stop token', async () => {
    const { engine } = await loadFake({ nextToken: ids => (ids.length < 6 ? 65 : endOfText) });
    const chat = engine.session();
    expect((await chat.generate('abc').result()).finishReason).toBe('stop');
    expect(text(await chat.ids())).toBe('abcAAA');
  });

  it('continues what is there for an empty prompt, once something is', async () => {
    const { engine } = await loadFake();
    const chat = engine.session();
    for (const prompt of ['', []]) {
      const error = await rejection(chat.generate(prompt).result());
      expect(error).toMatchObject({ code: 'invalid-argument', message: /prompt is empty/ });
    }
    const options = { maxTokens: 6, temperature: 0 };
    await chat.generate('Once', { ...options, maxTokens: 3 }).result();
    await chat.generate('', { ...options, maxTokens: 3 }).result();
    const { tokens } = await engine.generate('Once', options).result();
    expect((await chat.ids()).slice(4)).toEqual(tokens);
  });

  it('takes a prompt without drawing', async () => {
    const { engine, wasm } = await loadFake();
    const chat = engine.session();
    await chat.generate('You are a tale.', { maxTokens: 0 }).result();
    expect(text(await chat.ids())).toBe('You are a tale.');
    expect(wasm.steps).toBe(0);
    await chat.generate(' Go', { maxTokens: 1 }).result();
    expect(await chat.ids()).toHaveLength(19);
  });

  it('is usable after an abort, with the tokens drawn so far', async () => {
    const { engine, wasm } = await loadFake();
    const chat = engine.session();
    const controller = new AbortController();
    const seen: number[] = [];
    const loop = async () => {
      for await (const { token } of chat.generate('Once', { signal: controller.signal })) {
        if (seen.push(token) === 3) controller.abort();
      }
    };
    expect(await rejection(loop())).toMatchObject({ name: 'AbortError' });
    const ids = Array.from(await chat.ids());
    expect(ids.slice(4, 4 + seen.length)).toEqual(seen);
    const steps = wasm.steps;
    await idle();
    expect(wasm.steps).toBe(steps);
    const { usage } = await chat.generate('!', { maxTokens: 2 }).result();
    expect(usage).toEqual({ prompt: ids.length + 1, cached: ids.length - 1, completion: 2 });
  });

  it('is usable after a failure, and computes its context anew', async () => {
    const { engine, wasm } = await loadFake({
      onStep: step => (step === 4 ? { code: 'out-of-memory', message: 'no room' } : undefined),
    });
    const chat = engine.session();
    const error = await rejection(chat.generate('Once').result());
    expect(error).toMatchObject({ code: 'out-of-memory' });
    const before = await chat.ids();
    expect(before).toHaveLength(7);
    expect(await rejection(chat.save())).toBeInstanceOf(InvalidArgumentError);
    await chat.truncate(5);
    const result = await chat.generate('', { maxTokens: 2, reusePrefix: false }).result();
    expect(result.usage).toEqual({ prompt: 5, cached: 0, completion: 2 });
    expect(wasm.liveSequences).toBe(1);
  });

  it('refuses a prompt that has no room beside its context, and is left as it was', async () => {
    const { engine } = await loadFake({ config: { nPositions: 16 } });
    const chat = engine.session();
    await chat.generate('0123456789', { maxTokens: 2 }).result();
    const error = await rejection(chat.generate('abcde').result());
    expect(error).toMatchObject({
      code: 'context-full',
      message: "The prompt has 5 tokens after the session's 12, but the model has 16 positions.",
    });
    expect(await chat.ids()).toHaveLength(12);
    expect((await chat.generate('abcd').result()).tokens).toHaveLength(1);
  });

  it('shifts to make room for a prompt, which stays whole', async () => {
    const { engine, wasm } = await loadFake({ config: { nPositions: 16 } });
    const chat = engine.session();
    const options = { overflow: 'shift', nKeep: 2, maxTokens: 1 } as const;
    await chat.generate('0123456789abc', options).result();
    const before = text(await chat.ids());
    await chat.generate('XYZ', options).result();
    expect(text(await chat.ids()).slice(0, -1)).toBe(`01${before.slice(-3)}XYZ`);
    const { usage } = await chat.generate('ABCDEFGHIJKLMN', options).result();
    expect(usage.prompt).toBe(16);
    expect(text(await chat.ids()).slice(0, -1)).toBe('01ABCDEFGHIJKLMN');
    // Full, and one more that is drawn.
    await chat.generate('', options).result();
    expect(text(await chat.ids()).slice(0, 2)).toBe('01');
    expect(await chat.ids()).toHaveLength(9);
    const error = await rejection(chat.generate('ABCDEFGHIJKLMNO', options).result());
    expect(error).toMatchObject({
      code: 'context-full',
      message: "The prompt has 15 tokens after the session's 2, but the model has 16 positions.",
    });
    expect(await chat.ids()).toHaveLength(9);
    expect(wasm.liveSequences).toBe(1);
  });

  it('rolls back', async () => {
    const { engine } = await loadFake();
    const chat = engine.session();
    await chat.generate('Once upon', { maxTokens: 8 }).result();
    await chat.truncate(4);
    expect(text(await chat.ids())).toBe('Once');
    expect(await rejection(chat.truncate(5))).toMatchObject({
      code: 'invalid-argument',
      message: "size must be an integer from 0 to 4, the session's tokens, not 5.",
    });
    for (const size of [-1, 1.5, Number.NaN]) {
      expect(await rejection(chat.truncate(size))).toBeInstanceOf(InvalidArgumentError);
    }
    await chat.truncate(0);
    await chat.generate('New', { maxTokens: 1 }).result();
    expect(await chat.ids()).toHaveLength(4);
  });

  it('forks into two that go their own ways', async () => {
    const { engine } = await loadFake();
    const chat = engine.session();
    const empty = await chat.fork();
    await chat.generate('Once', { maxTokens: 4 }).result();
    const fork = await chat.fork();
    const before = await chat.ids();
    await Promise.all([
      chat.generate(' up', { maxTokens: 4, temperature: 0 }).result(),
      fork.generate(' in', { maxTokens: 4, temperature: 0 }).result(),
    ]);
    const [one, two] = [await chat.ids(), await fork.ids()];
    expect(one.slice(0, 8)).toEqual(before);
    expect(two.slice(0, 8)).toEqual(before);
    expect(text(one.slice(8, 11))).toBe(' up');
    expect(text(two.slice(8, 11))).toBe(' in');
    expect(await empty.ids()).toHaveLength(0);
    await chat.dispose();
    expect(await fork.ids()).toEqual(two);
  });

  it('is saved, and restored on another engine', async () => {
    const { engine } = await loadFake();
    const chat = engine.session();
    expect(await rejection(chat.save())).toBeInstanceOf(InvalidArgumentError);
    await chat.generate('Once', { maxTokens: 4 }).result();
    const bytes = await chat.save();
    const other = await loadFake();
    // A view of more than the state, as a file read into a pool is.
    const pool = new Uint8Array(bytes.length + 16);
    pool.set(bytes, 8);
    const restored = await other.engine.restore(pool.subarray(8, 8 + bytes.length));
    expect(pool.length).toBe(bytes.length + 16);
    expect(await restored.ids()).toEqual(await chat.ids());
    const { usage } = await restored.generate('!', { maxTokens: 1 }).result();
    expect(usage).toEqual({ prompt: 9, cached: 7, completion: 1 });
    const damaged = await rejection(other.engine.restore(bytes.subarray(1)));
    expect(damaged).toBeInstanceOf(InvalidArgumentError);
    expect(await rejection(other.engine.restore('state' as never))).toBeInstanceOf(
      InvalidArgumentError,
    );
    expect(other.wasm.liveSequences).toBe(1);
  });

  it('does one thing at a time', async () => {
    const { engine } = await loadFake();
    const chat = engine.session();
    const iterator = chat.generate('Once')[Symbol.asyncIterator]();
    await iterator.next();
    const calls = [chat.generate('x').result(), chat.truncate(0), chat.fork(), chat.save()];
    for (const call of calls) {
      const error = await rejection(call);
      expect(error).toBeInstanceOf(GenerationError);
      expect(error).toMatchObject({ code: 'busy' });
    }
    expect((await chat.ids()).length).toBeGreaterThan(4);
    expect(await collect(iterator)).toHaveLength(124);
    await chat.truncate(4);
  });

  it('has the cache in blocks only', async () => {
    const { engine } = await loadFake();
    for (const cache of ['concat', 'none'] as const) {
      const error = await rejection(engine.session().generate('a', { cache }).result());
      expect(error).toMatchObject({
        code: 'invalid-argument',
        message: `cache must be 'block' in a session, not "${cache}".`,
      });
    }
  });
});

describe('a disposed session', () => {
  const calls = (chat: Session) => [
    chat.generate('x').result(),
    chat.ids(),
    chat.truncate(0),
    chat.fork(),
    chat.save(),
  ];

  it('ends its run, and refuses every call', async () => {
    const { engine, wasm } = await loadFake();
    const chat = engine.session();
    const run = rejection(chat.generate('Once').result());
    await chat.dispose();
    await chat.dispose();
    expect(await run).toMatchObject({ ...disposed, message: 'The session was disposed.' });
    for (const call of calls(chat)) expect(await rejection(call)).toMatchObject(disposed);
    await engine.memory();
    expect(wasm.liveSequences).toBe(0);
    expect(await collect(engine.generate('a', { maxTokens: 2 }))).toHaveLength(2);
  });

  it('is what the sessions of a disposed engine are too', async () => {
    const { engine } = await loadFake();
    const chat = engine.session();
    await chat.generate('Once', { maxTokens: 1 }).result();
    await engine.dispose();
    for (const call of calls(chat)) expect(await rejection(call)).toMatchObject(disposed);
    const late = engine.session();
    expect(await rejection(late.ids())).toMatchObject(disposed);
    expect(await rejection(engine.restore(new Uint8Array()))).toMatchObject(disposed);
    expect(await rejection(engine.cacheView())).toMatchObject(disposed);
    await chat.dispose();
  });
});

describe('a session that nobody has any more', () => {
  setFlagsFromString('--expose-gc');
  const collectGarbage = runInNewContext('gc') as () => void;

  it('gives its blocks back, but not while it generates', async () => {
    const { engine, wasm } = await loadFake();
    const count = async () => {
      const run = engine.session().generate('Once', { maxTokens: 100 })[Symbol.asyncIterator]();
      expect((await run.next()).done).toBe(false);
      for (let i = 0; i < 5; i++) {
        collectGarbage();
        await idle(5);
      }
      let tokens = 1;
      while (!(await run.next()).done) tokens++;
      return tokens;
    };
    expect(await count()).toBe(100);
    await expect
      .poll(
        async () => {
          collectGarbage();
          await engine.memory();
          return wasm.liveSequences;
        },
        { timeout: 30_000 },
      )
      .toBe(0);
  });
});
