import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';

import { InvalidArgumentError } from '../../bindings/ts/errors.js';
import { checkLoadOptions, generateRequest } from '../../bindings/ts/options.js';
import type { GenerateOptions, LoadOptions, ModelConfig, Prompt } from '../../bindings/ts/types.js';
import { loadFake, rejection } from './harness.js';

const vocabSize = 300;
const info = {
  config: { vocabSize } as ModelConfig,
  contextLength: 128,
  defaults: {},
  endOfText: 256,
};
const limits = { info, inSession: false };

function refusal(options: Record<string, unknown>, prompt: unknown = 'a'): string {
  try {
    generateRequest(prompt as Prompt, options as GenerateOptions, limits);
  } catch (error) {
    expect(error).toBeInstanceOf(InvalidArgumentError);
    return (error as Error).message;
  }
  throw new Error('Nothing was refused');
}

const notInteger = fc.oneof(
  fc.double({ noInteger: true }),
  fc.constantFrom('5', null, true, [], {}, 5n, Number.NaN, Number.POSITIVE_INFINITY),
);

describe('options of generate', () => {
  it('have defaults', () => {
    expect(generateRequest('a', {}, limits)).toEqual({
      prompt: 'a',
      allowSpecial: false,
      maxTokens: undefined,
      temperature: 1,
      topK: 0,
      topP: 1,
      minP: 0,
      repetitionPenalty: 1,
      frequencyPenalty: 0,
      presencePenalty: 0,
      logitBias: [],
      seed: expect.any(Number),
      logprobs: undefined,
      stop: [],
      stopTokens: [256],
      echo: false,
      n: 1,
      cache: 'block',
      overflow: 'stop',
      nKeep: 0,
      reusePrefix: true,
    });
    expect(generateRequest('a', { seed: undefined } as object, limits).seed).toBeTypeOf('number');
  });

  it('are taken over their whole range', () => {
    const float = fc.double({ min: -1e38, max: 1e38, noNaN: true });
    const options = fc.record({
      maxTokens: fc.maxSafeNat(),
      temperature: float.map(Math.abs),
      topK: fc.maxSafeNat(),
      topP: fc.double({ min: 1e-9, max: 1, noNaN: true }),
      minP: fc.double({ min: 0, max: 1, noNaN: true }),
      repetitionPenalty: float.filter(value => value >= 1e-9),
      frequencyPenalty: float,
      presencePenalty: float,
      logitBias: fc.dictionary(fc.nat(vocabSize - 1).map(String), float),
      seed: fc.maxSafeNat(),
      logprobs: fc.maxSafeNat(),
      stop: fc.array(fc.string({ minLength: 1 })),
      stopTokens: fc.array(fc.nat()),
      echo: fc.boolean(),
      n: fc.integer({ min: 1, max: 128 }),
      cache: fc.constant('block' as const),
      allowSpecial: fc.boolean(),
      overflow: fc.constantFrom('stop', 'shift', 'error'),
      nKeep: fc.nat(63),
      reusePrefix: fc.boolean(),
    });
    fc.assert(
      fc.property(options, given => {
        const request = generateRequest('a', given, limits);
        const biases = Object.entries(given.logitBias);
        expect(request).toEqual({
          ...given,
          prompt: 'a',
          topK: Math.min(given.topK, vocabSize),
          logitBias: biases.map(([token, bias]) => [Number(token), bias]),
        });
      }),
    );
  });

  it.each([
    ['maxTokens', 'an integer of at least 0'],
    ['topK', 'an integer of at least 0'],
    ['logprobs', 'an integer of at least 0'],
    ['seed', 'an integer from 0 to 2^53 - 1'],
  ])('refuse a %s that is no natural number, and name it', (name, range) => {
    const bad = fc.oneof(notInteger, fc.integer({ max: -1 }), fc.constant(2 ** 53));
    fc.assert(
      fc.property(bad, value => {
        expect(refusal({ [name]: value })).toMatch(`${name} must be ${range}, not `);
      }),
    );
  });

  it.each([
    [{ temperature: -0.1 }, 'temperature must be a finite number of at least 0, not -0.1.'],
    [{ temperature: Number.NaN }, /^temperature .* not NaN\.$/],
    [{ temperature: Number.POSITIVE_INFINITY }, /^temperature .* not Infinity\.$/],
    [{ temperature: '1' }, /^temperature .* not "1"\.$/],
    [{ topP: 0 }, 'topP must be a number above 0 and up to 1, not 0.'],
    [{ topP: 1.01 }, /^topP .* not 1.01\.$/],
    [{ topP: null }, /^topP .* not null\.$/],
    [{ topP: 1e-300 }, /^topP .* not 1e-300\.$/],
    [{ temperature: 1e39 }, /^temperature .* not 1e\+39\.$/],
    [{ minP: -0.1 }, 'minP must be a number from 0 to 1, not -0.1.'],
    [{ minP: 1.1 }, /^minP .* not 1.1\.$/],
    [{ repetitionPenalty: 0 }, 'repetitionPenalty must be a finite number above 0, not 0.'],
    [{ repetitionPenalty: 1e-99 }, /^repetitionPenalty .* not 1e-99\.$/],
    [{ frequencyPenalty: Number.NaN }, 'frequencyPenalty must be a finite number, not NaN.'],
    [{ presencePenalty: '1' }, 'presencePenalty must be a finite number, not "1".'],
    [{ logitBias: [1] }, /^logitBias must be an object of numbers by token id, not /],
    [{ logitBias: { 300: 1 } }, 'logitBias must be by token ids from 0 to 299, not "300".'],
    [{ logitBias: { the: 1 } }, /^logitBias must be by token ids .* not "the"\.$/],
    [{ logitBias: { 5: 'x' } }, 'logitBias[5] must be a finite number, or -Infinity, not "x".'],
    [{ logitBias: { 5: Infinity } }, /^logitBias\[5\] .* not Infinity\.$/],
    [{ stop: 5 }, 'stop must be a text that is not empty, not 5.'],
    [{ stop: '' }, 'stop must be a text that is not empty, not "".'],
    [{ stop: ['a', ''] }, 'stop[1] must be a text that is not empty, not "".'],
    [{ stop: '\ud83d' }, /^stop must be a text without lone surrogates, not /],
    [{ echo: 1 }, 'echo must be true or false, not 1.'],
    [{ n: 0 }, 'n must be an integer from 1 to 128, not 0.'],
    [{ n: 129 }, /^n must be an integer from 1 to 128/],
    [{ n: 2, cache: 'none' }, "n must be 1 with the cache 'none', not 2."],
    [{ stopTokens: 5 }, /^stopTokens must be an array of token ids, not 5\.$/],
    [{ stopTokens: [1, -1] }, /^stopTokens\[1\] must be an integer from 0 .* not -1\.$/],
    [{ stopTokens: ['a'] }, /^stopTokens\[0\] .* not "a"\.$/],
    [{ cache: 'blocks' }, "cache must be 'block' or 'concat' or 'none', not \"blocks\"."],
    [{ cache: 'toString' }, /^cache must be /],
    [{ overflow: 'slide' }, "overflow must be 'stop' or 'shift' or 'error', not \"slide\"."],
    [{ nKeep: -1 }, /^nKeep must be an integer of at least 0, not -1\.$/],
    [
      { overflow: 'shift', nKeep: 64 },
      /^nKeep must be less than half the context of 128 tokens, not 64\.$/,
    ],
    [{ reusePrefix: 'yes' }, /^reusePrefix must be true or false, not "yes"\.$/],
    [{ allowSpecial: 1 }, /^allowSpecial must be true or false, not 1\.$/],
    [{ signal: new AbortController() }, /^signal must be an AbortSignal, not an object/],
    [{ maxtokens: 5 }, /^generate has no option "maxtokens"; the closest is "maxTokens"/],
    [{ max_tokens: 5 }, /the closest is "maxTokens"/],
    [{ top_p: 5 }, /the closest is "topP"/],
    [{ temprature: 5 }, /the closest is "temperature"/],
  ])('refuse %j', (options, message) => {
    expect(refusal(options)).toMatch(message);
  });

  it('may be those of the model, where none are given', () => {
    const defaults = {
      maxTokens: 7,
      temperature: 0,
      topK: 40,
      topP: 0.9,
      minP: 0.1,
      repetitionPenalty: 1.2,
      stopTokens: [3, 4],
    };
    const of = (options: GenerateOptions) =>
      generateRequest('a', options, { ...limits, info: { ...info, defaults } });
    expect(of({})).toMatchObject(defaults);
    expect(of({ temperature: undefined } as object)).toMatchObject(defaults);
    const given = { ...defaults, temperature: 0.5, topP: 1, maxTokens: 9, stopTokens: [] };
    expect(of({ temperature: 0.5, topP: 1, maxTokens: 9, stopTokens: [] })).toMatchObject(given);
  });

  it('are limited in sessions', () => {
    const inSession = (options: GenerateOptions) => () =>
      generateRequest('a', options, { info, inSession: true });
    expect(inSession({ n: 2 })).toThrow('n must be 1 in a session, not 2.');
    expect(inSession({ cache: 'none' })).toThrow("cache must be 'block' in a session");
  });

  it('refuse what is no object', () => {
    for (const options of [null, 5, 'fast', [1]]) {
      expect(refusal(options as never)).toMatch(/options of generate must be an object, not/);
    }
  });
});

describe('prompts', () => {
  it('refuse ids that the model does not have, by place and range', () => {
    const bad = fc.oneof(
      notInteger.filter(value => typeof value !== 'bigint'),
      fc.integer({ min: vocabSize }),
      fc.integer({ max: -1 }),
    );
    fc.assert(
      fc.property(fc.array(fc.nat(vocabSize - 1)), bad, (ids, id) => {
        const at = `prompt[${ids.length}] must be a token id from 0 to 299, not `;
        expect(refusal({}, [...ids, id])).toContain(at);
      }),
    );
    expect(refusal({}, [300n])).toContain('not 300n');
    expect(refusal({}, { length: 2 ** 50 })).toContain('prompt[0]');
  });

  it.each([null, undefined, 5, {}, true, () => 'a', { length: -1 }, new Set([1])])(
    'refuse %o',
    prompt => {
      expect(() => generateRequest(prompt as never, {}, limits)).toThrow(
        /prompt must be a string, or an array of token ids, not/,
      );
    },
  );

  it('suggest the end-of-text id for an empty one', () => {
    for (const prompt of ['', [], new Int32Array()]) {
      expect(refusal({}, prompt)).toMatch(/empty.*end-of-text id/);
    }
  });

  it('are refused by the generation, not by the call', async () => {
    const { engine, wasm } = await loadFake();
    const error = await rejection(engine.generate('a', { topP: 2 }).result());
    expect(error).toBeInstanceOf(InvalidArgumentError);
    expect(wasm.steps).toBe(0);
  });

  it('are refused when their text has tokens that the model lacks', async () => {
    const { engine } = await loadFake({ config: { vocabSize: 100 } });
    const error = await rejection(engine.generate('zebra').result());
    expect(error).toMatchObject({
      code: 'invalid-argument',
      message: expect.stringMatching(/token 122.*ends at 99/),
    });
  });
});

describe('options of load', () => {
  it.each([
    [{ contextLength: 0 }, /^contextLength must be an integer from 1 to 2147483647, not 0\.$/],
    [{ contextLength: 1.5 }, /^contextLength/],
    [{ window: 0 }, /^window must be an integer from 1 to 2147483647, not 0\.$/],
    [{ dtype: 'f16' }, "dtype must be 'f32' or 'q8' or 'q4', not \"f16\"."],
    [{ kvDtype: 'f64' }, "kvDtype must be 'f32' or 'f16' or 'q8', not \"f64\"."],
    [{ kvBytes: 2 ** 32 }, /^kvBytes must be an integer from 1 to 2\^32 - 1, not 4294967296\.$/],
    [{ prefixCache: 1 }, /^prefixCache must be true or false, not 1\.$/],
    [{ prefillChunk: 0 }, /^prefillChunk must be an integer from 1 to 2147483647, not 0\.$/],
    [{ onProgress: 5 }, /^onProgress must be a function, not 5\.$/],
    [{ hubUrl: 5 }, /^hubUrl must be a URL/],
    [{ revision: '' }, /^revision must be/],
    [{ signal: {} }, /^signal must be an AbortSignal/],
    [{ onprogress: () => {} }, /load has no option "onprogress"; the closest is "onProgress"/],
  ])('refuse %o', (options, message) => {
    expect(() => checkLoadOptions(options as LoadOptions)).toThrow(message);
    expect(() => checkLoadOptions(options as LoadOptions)).toThrow(InvalidArgumentError);
  });

  it('are all optional', () => {
    expect(checkLoadOptions({})).toEqual({
      dtype: 'q8',
      contextLength: undefined,
      window: undefined,
      kvDtype: 'f32',
      kvBytes: undefined,
      prefixCache: true,
      prefillChunk: 64,
    });
    checkLoadOptions({ contextLength: 5, hubUrl: new URL('https://a.test'), onProgress() {} });
  });
});
