import { describe, expect, it } from 'vitest';
import type { ComputeOptions } from '../../bindings/ts/compute-types.js';
import { GenerationError, InvalidArgumentError } from '../../bindings/ts/errors.js';
import { endOfText, idle, loadFake, rejection } from './harness.js';

describe('the tokenizer of an engine', () => {
  it('turns text to ids and back, in the Worker', async () => {
    const { engine } = await loadFake();
    const { tokenizer } = engine;
    expect(tokenizer.vocabSize).toBe(257);
    expect(await tokenizer.encode('Hi é')).toEqual(Int32Array.from([72, 105, 32, 0xc3, 0xa9]));
    expect(await tokenizer.encode('')).toEqual(new Int32Array());
    expect(await tokenizer.decode([72, 105])).toBe('Hi');
    expect(await tokenizer.decode(Uint8Array.from([0xc3]))).toBe('\ufffd');
  });

  it('reads control tokens, and leaves them out, on request only (B15)', async () => {
    const { tokenizer } = (await loadFake()).engine;
    expect(await tokenizer.encode('<|endoftext|>')).toHaveLength(13);
    const special = await tokenizer.encode('<|endoftext|>', { allowSpecial: true });
    expect(Array.from(special)).toEqual([endOfText]);
    expect(await tokenizer.decode([72, endOfText])).toBe('H<|endoftext|>');
    expect(await tokenizer.decode([72, endOfText], { skipSpecial: true })).toBe('H');
  });

  it('refuses what is no text, or no id', async () => {
    const { tokenizer } = (await loadFake()).engine;
    const refusals = [
      [tokenizer.encode(5 as never), 'text must be a string, not 5.'],
      [tokenizer.encode('', { special: true } as never), /encode has no option "special"/],
      [tokenizer.encode('', { allowSpecial: 1 } as never), /^allowSpecial must be/],
      [tokenizer.decode('a' as never), 'ids must be an array of token ids, not "a".'],
      [tokenizer.decode([1, 257]), 'ids[1] must be an integer from 0 to 256, not 257.'],
      [tokenizer.decode([0.5]), /^ids\[0\] must be an integer/],
    ] as const;
    for (const [promise, message] of refusals) {
      const error = await rejection(promise);
      expect(error).toBeInstanceOf(InvalidArgumentError);
      expect((error as Error).message).toMatch(message);
    }
  });
});

describe('logits, embed and score', () => {
  const methods = ['logits', 'embed', 'score'] as const;

  it.each(methods)('%s refuses what generate refuses, and frees what it has', async method => {
    const { engine, wasm } = await loadFake({ config: { nPositions: 16 } });
    const call = (prompt: unknown, options: object = {}) =>
      rejection(engine[method](prompt as string, options as ComputeOptions));
    expect(await call('')).toBeInstanceOf(InvalidArgumentError);
    expect(await call([300])).toBeInstanceOf(InvalidArgumentError);
    expect(await call('a', { pool: 1 })).toMatchObject({ message: /has no option "pool"/ });
    expect(await call('a', { signal: 5 })).toMatchObject({ message: /^signal must be/ });
    const long = await call('x'.repeat(17));
    expect(long).toBeInstanceOf(GenerationError);
    expect(long).toMatchObject({ code: 'context-full', message: /17 tokens/ });
    expect(wasm.liveSequences).toBe(0);
  });

  it.each(methods)('%s can be aborted before and between chunks of the prompt', async method => {
    const reason = new Error('enough');
    const controller = new AbortController();
    const { engine, wasm } = await loadFake({
      prefillChunk: 1,
      onStep: step => {
        if (step === 3) controller.abort(reason);
        return undefined;
      },
    });
    const options = { signal: controller.signal };
    expect(await rejection(engine[method]('x'.repeat(100), options))).toBe(reason);
    await engine.memory();
    expect(wasm.liveSequences).toBe(0);
    const { steps } = wasm;
    expect(steps).toBeLessThan(20);
    expect(await rejection(engine[method]('x', options))).toBe(reason);
    await idle();
    expect(wasm.steps).toBe(steps);
  });

  it.each(methods)('%s fails with what its sequence says', async method => {
    const { engine, wasm } = await loadFake({
      onStep: () => ({ code: 'non-finite', message: 'the weights are damaged' }),
    });
    const error = await rejection(engine[method]('abc'));
    expect(error).toMatchObject({ code: 'non-finite', message: 'the weights are damaged' });
    expect(wasm.liveSequences).toBe(0);
  });

  it('refuse options that only one of them has', async () => {
    const { engine } = await loadFake();
    const all = await rejection(engine.logits('a', { all: 1 } as never));
    expect(all).toMatchObject({ message: 'all must be true or false, not 1.' });
    const pooling = await rejection(engine.embed('a', { pooling: 'max' } as never));
    expect(pooling).toMatchObject({ message: "pooling must be 'mean' or 'last', not \"max\"." });
  });
});
