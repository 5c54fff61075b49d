import * as fc from 'fast-check';
import { describe, expect, it, vi } from 'vitest';

import type { Tokenizer } from '../../bindings/ts/tokenizer/tokenizer.js';
import type { GenerateChunk } from '../../bindings/ts/types.js';
import { Completion } from '../../bindings/ts/worker/completion.js';
import { collect, endOfText, idle, loadFake } from './harness.js';

const bytesOf = (text: string) => Array.from(new TextEncoder().encode(text));

/** Draws these ids one after the other, whatever the prompt of `promptLength` tokens. */
const script = (promptLength: number, tokens: readonly number[]) => (ids: readonly number[]) =>
  tokens[ids.length - promptLength] ?? endOfText;

/** What comes of tokens, each of which is some text, before the end-of-text token. */
function complete(pieces: readonly string[], stops: readonly string[]) {
  // A tokenizer with a token for each piece.
  const texts = [...new Set(pieces)];
  const fake = {
    tokenBytes: (id: number) => new TextEncoder().encode(texts[id]),
    isSpecial: () => false,
  } as unknown as Tokenizer;
  const chunks: GenerateChunk[] = [];
  const completion = new Completion(fake, stops, chunk => chunks.push(chunk));
  const stopped = pieces.some(piece =>
    completion.add({ index: 0, token: texts.indexOf(piece), text: '' }, false),
  );
  const seen = chunks.map(({ text }) => text);
  const matched = stopped || completion.end();
  const text = chunks.map(chunk => chunk.text).join('') + completion.tail;
  return { text, stopped: matched, seen, count: completion.count };
}

describe('stop strings', () => {
  it('do not leak their start, over as many tokens as they take (B27)', () => {
    const ids = ['DEF', 'GH', 'IJ'];
    expect(complete(ids, ['DEFGHIJ'])).toEqual({ text: '', stopped: true, seen: [], count: 0 });
  });

  it('are found over token boundaries, and nothing of them is put out (B28)', () => {
    const pieces = ['Hi', '\n', 'User', ':'];
    const stopped = { text: 'Hi', stopped: true, seen: ['Hi'], count: 1 };
    expect(complete(pieces, ['\nUser:'])).toEqual(stopped);
    expect(complete(['\n', 'User', ':'], ['\nUser:']).text).toBe('');
  });

  it('lose no tail that only looked like one (B30)', () => {
    expect(complete(['ple', 'as'], ['assistant'])).toMatchObject({ text: 'pleas', stopped: false });
    expect(complete(['\n', 'Us', 'age'], ['\nUser:']).seen).toEqual(['\n', 'Us', 'age']);
  });

  it('that end inside a token cut it where they begin (B31)', () => {
    expect(complete(['...'], ['..'])).toEqual({ text: '', stopped: true, seen: [], count: 0 });
    expect(complete(['ab...'], ['..'])).toMatchObject({ text: 'ab', stopped: true, count: 1 });
  });

  it('give the text that a look at the whole gives, however it is cut into tokens', () => {
    const letters = fc.constantFrom('a', 'b', 'é', '😊');
    const text = (minLength: number, maxLength: number) =>
      fc.array(letters, { minLength, maxLength }).map(chosen => chosen.join(''));
    fc.assert(
      fc.property(
        fc.array(text(1, 3), { maxLength: 12 }),
        fc.array(text(1, 4), { maxLength: 3 }),
        (pieces, stops) => {
          const whole = pieces.join('');
          let expected = whole;
          for (let end = 1; end <= whole.length && expected === whole; end++) {
            const ending = stops.filter(stop => whole.slice(0, end).endsWith(stop));
            const longest = Math.max(...ending.map(stop => stop.length));
            if (ending.length > 0) expected = whole.slice(0, end - longest);
          }
          const found = complete(pieces, stops);
          expect(found.text).toBe(expected);
          expect(found.stopped).toBe(expected !== whole);
          // What was seen before the end is a part of it.
          expect(expected.startsWith(found.seen.join(''))).toBe(true);
        },
      ),
      { numRuns: 1000 },
    );
  });

  it('end a run, whose tokens are those that the text is of', async () => {
    const nextToken = script(1, bytesOf('So.\nUser: hi'));
    const { engine, wasm } = await loadFake({ nextToken });
    const generation = engine.generate('>', { stop: ['User:', '\nUser'] });
    const chunks = await collect(generation);
    const result = await generation.result();
    expect(chunks.map(({ text }) => text).join('')).toBe('So.');
    expect(result).toMatchObject({ text: 'So.', finishReason: 'stop' });
    expect(Array.from(result.tokens)).toEqual(bytesOf('So.'));
    expect(result.usage.completion).toBe(3);
    expect(wasm.liveSequences).toBe(0);
    // A single one needs no array.
    expect((await engine.generate('>', { stop: 'hi' }).result()).text).toBe('So.\nUser: ');
  });

  it('of characters that are several tokens leave no part of one behind', async () => {
    const nextToken = script(1, [...bytesOf('a😊b😊'), endOfText]);
    const { engine } = await loadFake({ nextToken });
    const result = await engine.generate('>', { stop: '😊' }).result();
    expect(result).toMatchObject({ text: 'a', finishReason: 'stop' });
    expect(Array.from(result.tokens)).toEqual(bytesOf('a'));
    const other = await engine.generate('>', { stop: 'b!' }).result();
    expect(other).toMatchObject({ text: 'a😊b😊', finishReason: 'stop' });
    expect(Array.from(other.tokens)).toEqual(bytesOf('a😊b😊'));
  });

  it('that are not complete at the limit are put out with it (B30)', async () => {
    const { engine } = await loadFake({ nextToken: script(1, bytesOf('abcd')) });
    const result = await engine.generate('>', { stop: 'bcd', maxTokens: 3 }).result();
    expect(result).toMatchObject({ text: 'abc', finishReason: 'length' });
    const last = await engine.generate('>', { stop: 'bcd', maxTokens: 4 }).result();
    expect(last).toMatchObject({ text: 'a', finishReason: 'stop' });
  });

  it('are no part of a session', async () => {
    const { engine } = await loadFake({ nextToken: ids => (ids.length % 2 ? 65 : 66) });
    const chat = engine.session();
    const { text } = await chat.generate('ab', { stop: 'BA', maxTokens: 9 }).result();
    expect(text).toBe('');
    expect(await chat.ids()).toHaveLength(2);
    const more = await chat.generate('', { stop: 'ABA', maxTokens: 9 }).result();
    expect(more.text).toBe('B');
    expect(Array.from(await chat.ids())).toEqual(bytesOf('abB'));
  });
});

describe('echo', () => {
  it('puts the prompt out before what is drawn', async () => {
    const { engine } = await loadFake({ nextToken: script(3, bytesOf('xyz')) });
    const generation = engine.generate('abc', { echo: true, stop: 'z', logprobs: 0 });
    const chunks = await collect(generation);
    expect(chunks.map(({ text }) => text)).toEqual(['a', 'b', 'c', 'x', 'y']);
    const logprobs = chunks.map(({ logprob }) => logprob);
    expect(logprobs).toEqual([undefined, ...Array.from('bcxy', () => -Math.LN2)]);
    const result = await generation.result();
    expect(result.text).toBe('abcxy');
    expect(Array.from(result.tokens)).toEqual(bytesOf('abcxy'));
    expect(result.usage).toEqual({ prompt: 3, cached: 0, completion: 2 });
    expect(result.choices[0]?.chunks).toEqual(chunks);
  });

  it('joins a character that the prompt begins and the model ends', async () => {
    const smile = bytesOf('😊');
    const { engine } = await loadFake({ nextToken: script(2, smile.slice(2)) });
    const options = { maxTokens: 2 };
    const echoed = await engine.generate(smile.slice(0, 2), { ...options, echo: true }).result();
    expect(echoed.text).toBe('😊');
    const alone = await engine.generate(smile.slice(0, 2), options).result();
    expect(alone.text).toBe('\ufffd\ufffd');
  });

  it('tells what the model thinks of the prompt, for each completion, and without any', async () => {
    const options = { echo: true, logprobs: 2 };
    const likeliest = (token: number) =>
      [0, 1].map(i => {
        const text = String.fromCharCode(token + i);
        return { token: token + i, text, logprob: -(i + 1) * Math.LN2 };
      });
    const first = { index: 0, token: 97, text: 'a' };
    const second = { index: 0, token: 98, text: 'b', logprob: -Math.LN2 };
    const prompt = [first, { ...second, topLogprobs: likeliest(98) }];
    for (const maxTokens of [0, 3]) {
      const { engine, wasm } = await loadFake();
      const { choices, usage } = await engine
        .generate('ab', { ...options, n: 2, maxTokens })
        .result();
      expect(choices).toHaveLength(2);
      for (const { index, chunks, finishReason } of choices) {
        expect(chunks?.slice(0, 2)).toEqual(prompt.map(chunk => ({ ...chunk, index })));
        expect(chunks).toHaveLength(2 + maxTokens);
        expect(finishReason).toBe('length');
      }
      expect(usage).toMatchObject({ prompt: 2, completion: 2 * maxTokens });
      expect(wasm.liveSequences).toBe(0);
    }
  });

  it('tells what the model thinks of a turn, and keeps nothing that it did not put out', async () => {
    const { engine } = await loadFake();
    const chat = engine.session();
    const options = { echo: true, logprobs: 0 };
    const opening = await chat.generate('ab', { ...options, maxTokens: 0 }).result();
    expect(opening.chunks?.map(({ logprob }) => logprob)).toEqual([undefined, -Math.LN2]);
    expect(Array.from(await chat.ids())).toEqual(bytesOf('ab'));
    const more = await chat.generate('c', { ...options, maxTokens: 1 }).result();
    expect(more.chunks?.map(({ logprob }) => logprob)).toEqual([-Math.LN2, -Math.LN2]);
    expect(await chat.ids()).toHaveLength(4);
    const nothing = await chat.generate('', { ...options, maxTokens: 0 }).result();
    expect(nothing.chunks).toEqual([]);
  });

  it('tells the prompt alone, control tokens as they were read (B15)', async () => {
    const { engine, wasm } = await loadFake();
    const options = { echo: true, maxTokens: 0 };
    const { text, tokens } = await engine.generate('a<|endoftext|>', options).result();
    expect(text).toBe('a<|endoftext|>');
    expect(tokens).toHaveLength(14);
    const special = { ...options, allowSpecial: true };
    const read = await engine.generate('a<|endoftext|>', special).result();
    expect(read.text).toBe(text);
    expect(Array.from(read.tokens)).toEqual([97, endOfText]);
    expect(wasm.steps).toBe(0);
  });
});

describe('n completions', () => {
  const options = { maxTokens: 12, seed: 5 };

  it('are those of n runs with seeds counted up, after one prefill', async () => {
    const { engine, wasm } = await loadFake({ prefillChunk: 1 });
    const alone: string[] = [];
    for (const seed of [5, 6, 7]) {
      const solo = await loadFake();
      alone.push((await solo.engine.generate('prompt', { ...options, seed }).result()).text);
    }
    const generation = engine.generate('prompt', { ...options, n: 3 });
    const chunks = await collect(generation);
    const result = await generation.result();
    expect(result.choices.map(({ index, text }) => [index, text])).toEqual([...alone.entries()]);
    expect(new Set(alone).size).toBe(3);
    for (const [index, text] of alone.entries()) {
      const own = chunks.filter(chunk => chunk.index === index);
      expect(own.map(chunk => chunk.text).join('')).toBe(text);
    }
    expect(result.text).toBe(alone[0]);
    expect(result.usage).toEqual({ prompt: 6, cached: 0, completion: 36 });
    // Six for the prompt, the first tokens drawn in the last of them, and one for each of the others.
    expect(wasm.steps).toBe(6 + 11);
    expect(wasm.liveSequences).toBe(0);
  });

  it('end each on its own', async () => {
    const { engine, wasm } = await loadFake({
      nextToken: (ids, { seedLow }) => (ids.length > 3 + seedLow ? endOfText : 65 + seedLow),
    });
    const { choices, usage } = await engine
      .generate('abc', { n: 3, seed: 0, maxTokens: 2, echo: true })
      .result();
    expect(choices.map(({ text, finishReason }) => [text, finishReason])).toEqual([
      ['abcA', 'stop'],
      ['abcBB', 'length'],
      ['abcCC', 'length'],
    ]);
    expect(usage.completion).toBe(5);
    expect(wasm.liveSequences).toBe(0);
    const none = await engine.generate('abc', { n: 2, maxTokens: 0, echo: true }).result();
    expect(none.choices.map(({ text }) => text)).toEqual(['abc', 'abc']);
  });

  it('wait together for their consumer, and go when it leaves', async () => {
    const { engine, wasm } = await loadFake();
    const iterator = engine.generate('a', { n: 4 })[Symbol.asyncIterator]();
    await iterator.next();
    await idle(300);
    const { steps } = wasm;
    await idle();
    expect(wasm.steps).toBe(steps);
    expect(wasm.liveSequences).toBe(4);
    await iterator.return?.();
    await engine.memory();
    expect(wasm.liveSequences).toBe(0);
  });

  it('fail together', async () => {
    const { engine, wasm } = await loadFake({
      onStep: step => (step === 4 ? { code: 'out-of-memory', message: 'no room' } : undefined),
    });
    await expect(engine.generate('a', { n: 3 }).result()).rejects.toThrow('no room');
    expect(wasm.liveSequences).toBe(0);
  });
});

describe('timings', () => {
  it('tell prefill, first token and decode apart, and add up to the whole (B121)', async () => {
    let now = 1000;
    const clock = vi.spyOn(performance, 'now').mockImplementation(() => now);
    try {
      const { engine } = await loadFake({
        prefillChunk: 2,
        onStep: step => {
          now += step <= 4 ? 50 : 3;
          return undefined;
        },
      });
      const { timings } = await engine.generate('12345678', { maxTokens: 21 }).result();
      expect(timings).toEqual({
        load: 0,
        prefill: 200,
        firstToken: 200,
        decode: 60,
        total: 260,
        tokensPerSecond: 20_000 / 60,
      });
    } finally {
      clock.mockRestore();
    }
  });
});
