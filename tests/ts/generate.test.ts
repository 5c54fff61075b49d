import { describe, expect, it, vi } from 'vitest';

import { GenerationError, InvalidArgumentError } from '../../bindings/ts/errors.js';
import type { Prompt } from '../../bindings/ts/types.js';
import { collect, endOfText, loadFake, rejection } from './harness.js';

const bytesOf = (text: string) => Array.from(new TextEncoder().encode(text));

/** Draws these ids one after the other, whatever the prompt of `promptLength` tokens. */
const script = (promptLength: number, tokens: readonly number[]) => (ids: readonly number[]) =>
  tokens[ids.length - promptLength] ?? endOfText;

describe('generate', () => {
  it('streams tokens with their text, and gives the same as a result', async () => {
    const { engine } = await loadFake();
    const generation = engine.generate('Once', { maxTokens: 20, seed: 1 });
    const chunks = await collect(generation);
    const result = await generation.result();
    expect(chunks).toHaveLength(20);
    expect(result.tokens).toEqual(Int32Array.from(chunks.map(chunk => chunk.token)));
    expect(result.text).toBe(chunks.map(chunk => chunk.text).join(''));
    expect(result.usage).toEqual({ prompt: 4, cached: 0, completion: 20 });
    const again = await engine.generate('Once', { maxTokens: 20, seed: 1 }).result();
    expect(again.text).toBe(result.text);
  });

  it.each([0, 1, 2, 3])('draws exactly maxTokens %i and ends by length (B71, B72)', async n => {
    const { engine, wasm } = await loadFake();
    const generation = engine.generate('Once', { maxTokens: n });
    const chunks = await collect(generation);
    const result = await generation.result();
    expect(chunks).toHaveLength(n);
    expect(result.tokens).toHaveLength(n);
    expect(result.finishReason).toBe('length');
    expect(result.usage).toEqual({ prompt: 4, cached: 0, completion: n });
    expect(wasm.steps).toBe(n);
  });

  it('fills the position table with prompt + new - 1 positions (T1)', async () => {
    const { engine } = await loadFake({ config: { nPositions: 16 } });
    const result = await engine.generate('x'.repeat(10)).result();
    expect(result.tokens).toHaveLength(7);
    expect(result.finishReason).toBe('length');
    const last = await engine.generate('x'.repeat(16)).result();
    expect(last.tokens).toHaveLength(1);
  });

  it('says how long a prompt is that does not fit', async () => {
    const { engine, wasm } = await loadFake({ config: { nPositions: 16 } });
    for (const prompt of ['x'.repeat(17), new Array(17).fill(5)]) {
      const error = await rejection(engine.generate(prompt).result());
      expect(error).toBeInstanceOf(GenerationError);
      expect(error).toMatchObject({
        code: 'context-full',
        message: expect.stringMatching(/17 tokens.*16 positions/),
      });
    }
    expect(wasm.steps).toBe(0);
  });

  it('counts a contextLength as the room there is', async () => {
    const { engine } = await loadFake({}, { contextLength: 8 });
    expect((await engine.generate('abcd').result()).tokens).toHaveLength(5);
    const error = await rejection(engine.generate('123456789').result());
    expect(error).toMatchObject({
      message: expect.stringMatching(/9 tokens.*contextLength of 8.*128/),
    });
  });

  it('stops at the end-of-text token, which is no output', async () => {
    const { engine } = await loadFake({ nextToken: script(1, [72, 105, endOfText]) });
    const generation = engine.generate('>');
    const chunks = await collect(generation);
    const result = await generation.result();
    expect(chunks.map(chunk => chunk.text)).toEqual(['H', 'i']);
    expect(result).toMatchObject({ text: 'Hi', finishReason: 'stop' });
    expect(result.usage.completion).toBe(2);
  });

  it('stops at the given tokens, or at none', async () => {
    const { engine } = await loadFake({ nextToken: script(1, [72, 105, endOfText, 33]) });
    const given = await engine.generate('>', { stopTokens: [105] }).result();
    expect(given).toMatchObject({ text: 'H', finishReason: 'stop' });
    const none = await engine.generate('>', { stopTokens: [], maxTokens: 4 }).result();
    expect(Array.from(none.tokens)).toEqual([72, 105, endOfText, 33]);
    expect(none.finishReason).toBe('length');
  });

  it("takes the config's end of text before the tokenizer's, if the model has it", async () => {
    const named = await loadFake({ config: { eosTokenId: 7 } });
    expect(named.engine.info.endOfText).toBe(7);
    const foreign = await loadFake({ config: { eosTokenId: 50256 } });
    expect(foreign.engine.info.endOfText).toBe(256);
    const neither = await loadFake({ config: { eosTokenId: -1, vocabSize: 256 } });
    expect(neither.engine.info.endOfText).toBeUndefined();
  });

  it('never emits half a character, and marks the one that the end cuts off', async () => {
    const smile = bytesOf('😊');
    const { engine } = await loadFake({ nextToken: script(1, [...smile, ...smile.slice(0, 2)]) });
    const cut = engine.generate('>', { maxTokens: 6 });
    const texts = (await collect(cut)).map(chunk => chunk.text);
    expect(texts).toEqual(['', '', '', '😊', '', '\ufffd']);
    expect((await cut.result()).text).toBe('😊\ufffd');
    const stopped = engine.generate('>');
    expect((await stopped.result()).text).toBe('😊\ufffd');
  });

  it('limits draws to ids that the tokenizer has (B74)', async () => {
    const { engine, wasm } = await loadFake();
    await engine.generate('a', { maxTokens: 1 }).result();
    expect(wasm.sequenceOptions[0]?.vocabLimit).toBe(257);
    const exact = await loadFake({ config: { vocabSize: 257 } });
    await exact.engine.generate('a', { maxTokens: 1 }).result();
    expect(exact.wasm.sequenceOptions[0]?.vocabLimit).toBe(0);
  });

  it('passes the options on, and the seed in two halves', async () => {
    const { engine, wasm } = await loadFake();
    const options = { temperature: 0.5, topK: 3, topP: 0.9, seed: 2 ** 53 - 1, maxTokens: 1 };
    const penalties = { repetitionPenalty: 1.2, frequencyPenalty: 0.3, presencePenalty: 0.4 };
    const logitBias = { 65: Number.NEGATIVE_INFINITY, 7: -1 };
    await engine
      .generate('a', { ...options, ...penalties, minP: 0.1, logitBias, cache: 'none' })
      .result();
    expect(wasm.sequenceOptions[0]).toEqual({
      output: 0,
      cache: 2,
      temperature: 0.5,
      topK: 3,
      topP: 0.9,
      minP: 0.1,
      repetitionPenalty: 1.2,
      frequencyPenalty: 0.3,
      presencePenalty: 0.4,
      logitBias: [7, -1, 65, Number.NEGATIVE_INFINITY],
      seedLow: 2 ** 32 - 1,
      seedHigh: 2 ** 21 - 1,
      vocabLimit: 257,
      shift: false,
      nKeep: 0,
      reusePrefix: true,
      promptLogprobs: -1,
    });
  });

  it('takes another seed each time when none is given', async () => {
    const { engine, wasm } = await loadFake();
    for (let i = 0; i < 3; i++) await engine.generate('a', { maxTokens: 1 }).result();
    expect(new Set(wasm.sequenceOptions.map(({ seedLow }) => seedLow)).size).toBe(3);
  });

  it('reads control tokens in a prompt only when asked to', async () => {
    const { engine } = await loadFake();
    const plain = await engine.generate('<|endoftext|>', { maxTokens: 0 }).result();
    expect(plain.usage.prompt).toBe(13);
    const options = { maxTokens: 0, allowSpecial: true };
    expect((await engine.generate('<|endoftext|>', options).result()).usage.prompt).toBe(1);
  });

  it('takes ids from any array as the same prompt (T15)', async () => {
    const { engine } = await loadFake();
    const ids = [72, 105, 33];
    const prompts: Prompt[] = [
      ids,
      Int32Array.from(ids),
      Uint16Array.from(ids),
      Float64Array.from(ids),
      BigInt64Array.from(ids.map(BigInt)),
      ids.map(BigInt),
      { length: 3, 0: 72, 1: 105, 2: 33 },
    ];
    const expected = await engine.generate('Hi!', { maxTokens: 5, seed: 9 }).result();
    for (const prompt of prompts) {
      const result = await engine.generate(prompt, { maxTokens: 5, seed: 9 }).result();
      expect(result.tokens).toEqual(expected.tokens);
    }
  });

  it('keeps the prompt as it was when generate was called', async () => {
    const { engine } = await loadFake();
    const ids = [72, 105];
    const expected = await engine.generate(ids, { maxTokens: 3, seed: 1 }).result();
    const later = engine.generate(ids, { maxTokens: 3, seed: 1 });
    ids[0] = 0;
    expect((await later.result()).tokens).toEqual(expected.tokens);
  });

  it('gives two runs at once the outputs that they have alone (B60)', async () => {
    const { engine, wasm } = await loadFake();
    const options = { maxTokens: 30, seed: 4 };
    const alone = [
      await engine.generate('first', options).result(),
      await engine.generate('second', options).result(),
    ];
    const both = await Promise.all([
      engine.generate('first', options).result(),
      collect(engine.generate('second', options)),
    ]);
    expect(both[0].tokens).toEqual(alone[0]?.tokens);
    expect(both[1].map(chunk => chunk.text).join('')).toBe(alone[1]?.text);
    expect(wasm.liveSequences).toBe(0);
  });

  it('iterates after and during the result', async () => {
    const { engine } = await loadFake();
    const generation = engine.generate('Once', { maxTokens: 100 });
    const iterator = generation[Symbol.asyncIterator]();
    const first = await iterator.next();
    const result = await generation.result();
    expect(first.value?.token).toBe(result.tokens[0]);
    expect(await collect(iterator)).toHaveLength(99);
    expect(await iterator.next()).toEqual({ done: true, value: undefined });
    expect(await generation.result()).toBe(result);
  });

  it('answers several calls of next in order', async () => {
    const { engine } = await loadFake();
    const iterator = engine.generate('a', { maxTokens: 2, seed: 3 })[Symbol.asyncIterator]();
    const all = await Promise.all([iterator.next(), iterator.next(), iterator.next()]);
    const { tokens } = await engine.generate('a', { maxTokens: 2, seed: 3 }).result();
    expect(all.map(({ value }) => value?.token)).toEqual([...tokens, undefined]);
  });

  it('refuses to be iterated over twice', async () => {
    const { engine } = await loadFake();
    const generation = engine.generate('a', { maxTokens: 2 });
    await collect(generation);
    expect(await rejection(collect(generation))).toBeInstanceOf(InvalidArgumentError);
    expect((await generation.result()).tokens).toHaveLength(2);
  });

  it('needs neither timers nor frames (B116)', async () => {
    const { engine } = await loadFake();
    const never = () => {
      throw new Error('A hidden page would wait here');
    };
    vi.stubGlobal('setTimeout', never);
    vi.stubGlobal('setInterval', never);
    vi.stubGlobal('setImmediate', never);
    vi.stubGlobal('requestAnimationFrame', never);
    try {
      expect(await collect(engine.generate('a', { maxTokens: 50 }))).toHaveLength(50);
    } finally {
      vi.unstubAllGlobals();
    }
  });

  it('has no rate for a single token', async () => {
    const { engine } = await loadFake();
    const { timings } = await engine.generate('a', { maxTokens: 1 }).result();
    expect(timings).toMatchObject({ decode: 0, tokensPerSecond: undefined });
  });

  it('reports the cache as the last token left it', async () => {
    const { engine } = await loadFake();
    const { memory } = await engine.generate('abc', { maxTokens: 5 }).result();
    expect(memory.kv).toEqual({
      reserved: 128 * 128,
      used: 7 * 128,
      shared: 0,
      cached: 0,
      perToken: 128,
      tokens: 7,
    });
    expect(memory.prefix).toMatchObject({ lookups: 1, hits: 0 });
    expect((await engine.memory()).kv.used).toBe(0);
  });
});

describe('logprobs', () => {
  it('come with each token when asked for, the likeliest tokens with their texts', async () => {
    const { engine } = await loadFake({ nextToken: script(1, [72, 105, endOfText]) });
    const chunks = await collect(engine.generate('>', { logprobs: 2 }));
    const likelier = (token: number) => [
      { token, text: String.fromCharCode(token), logprob: -Math.LN2 },
      { token: token + 1, text: String.fromCharCode(token + 1), logprob: -2 * Math.LN2 },
    ];
    expect(chunks).toEqual([
      { index: 0, token: 72, text: 'H', logprob: -Math.LN2, topLogprobs: likelier(72) },
      { index: 0, token: 105, text: 'i', logprob: -Math.LN2, topLogprobs: likelier(105) },
    ]);
  });

  it('can be of the drawn tokens alone', async () => {
    const { engine } = await loadFake();
    const [chunk] = await collect(engine.generate('>', { maxTokens: 1, logprobs: 0 }));
    expect(chunk).toMatchObject({ logprob: -Math.LN2, topLogprobs: [] });
  });

  it('are as many as the tokenizer has ids, at the most', async () => {
    const { engine } = await loadFake({ nextToken: () => 0 });
    const [chunk] = await collect(engine.generate('>', { maxTokens: 1, logprobs: 1e9 }));
    expect(chunk?.topLogprobs).toHaveLength(257);
    expect(chunk?.topLogprobs?.[255]).toMatchObject({ token: 255, text: '\ufffd' });
  });

  it('are left out by default', async () => {
    const { engine } = await loadFake();
    const [chunk] = await collect(engine.generate('>', { maxTokens: 1 }));
    expect(Object.keys(chunk ?? {})).toEqual(['index', 'token', 'text']);
  });
});
