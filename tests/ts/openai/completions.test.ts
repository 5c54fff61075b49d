import fc from 'fast-check';
import type OpenAI from 'openai';
import { describe, expect, it } from 'vitest';

import { OpenAIRequestError } from '../../../bindings/ts/openai/index.js';
import type { CompletionChunk, CompletionParams } from '../../../bindings/ts/openai/types.js';
import { idle, rejection } from '../harness.js';
import { collectAll, loadApi, says } from './support.js';

/** What a stream says, by choice. */
function fold(chunks: readonly CompletionChunk[]) {
  const choices: { text: string; reasons: (string | null)[] }[] = [];
  for (const { choices: parts } of chunks) {
    for (const { index, text, finish_reason } of parts) {
      choices[index] ??= { text: '', reasons: [] };
      choices[index].text += text;
      choices[index].reasons.push(finish_reason);
    }
  }
  return choices;
}

describe('completions', () => {
  it('continue a prompt, in the shape of the API', async () => {
    const { api, engine } = await loadApi();
    const { text } = await engine.generate('Once', { seed: 5, maxTokens: 16 }).result();
    const before = Math.floor(Date.now() / 1000);
    // OpenAI's types do not know that an echoed token has no log-probability.
    const completion: Omit<OpenAI.Completion, 'choices'> = await api.completions.create({
      prompt: 'Once',
      seed: 5,
    });
    expect(completion).toEqual({
      id: expect.stringMatching(/^cmpl-[0-9a-f]{24}$/),
      object: 'text_completion',
      created: expect.toSatisfy((time: number) => time >= before && Number.isInteger(time)),
      model: 'kvasm',
      system_fingerprint: 'simd',
      choices: [{ index: 0, text, logprobs: null, finish_reason: 'length' }],
      usage: {
        prompt_tokens: 4,
        completion_tokens: 16,
        total_tokens: 20,
        prompt_tokens_details: { cached_tokens: 3 },
      },
    });
  });

  it('stop at the end-of-text token, and say so', async () => {
    const { api } = await loadApi(says('Hi', ' there'));
    const { choices } = await api.completions.create({ prompt: 'Hi' });
    expect(choices).toMatchObject([{ text: ' there', finish_reason: 'stop' }]);
  });

  it('start from the end-of-text token when there is no prompt', async () => {
    const { api, engine } = await loadApi();
    const { text } = await engine.generate([256], { seed: 1, maxTokens: 16 }).result();
    for (const prompt of [undefined, null]) {
      const { choices } = await api.completions.create({ prompt: prompt as null, seed: 1 });
      expect(choices[0]?.text).toBe(text);
    }
  });

  it('number several prompts and several choices through, each with a seed of its own', async () => {
    const { api, engine } = await loadApi();
    const prompts = ['a', [98, 99], 'd'];
    const expected: string[] = [];
    for (const prompt of prompts) {
      for (const seed of [7, 8]) {
        expected.push((await engine.generate(prompt, { seed, maxTokens: 5 }).result()).text);
      }
    }
    const params = { prompt: prompts as string[], n: 2, seed: 7, max_tokens: 5 };
    const { choices, usage } = await api.completions.create(params);
    expect(choices.map(({ text }) => text)).toEqual(expected);
    expect(choices.map(({ index }) => index)).toEqual([0, 1, 2, 3, 4, 5]);
    expect(usage).toMatchObject({ prompt_tokens: 4, completion_tokens: 30, total_tokens: 34 });
  });

  it('streamed say the same as whole, whatever is asked', async () => {
    const { api } = await loadApi();
    const request = fc.record(
      {
        prompt: fc.oneof(
          fc.string({ minLength: 1, maxLength: 20 }),
          fc.array(fc.string({ minLength: 1, maxLength: 9 }), { minLength: 1, maxLength: 3 }),
          fc.array(fc.nat(255), { minLength: 1, maxLength: 9 }),
        ),
        seed: fc.nat(1000),
        n: fc.integer({ min: 1, max: 3 }),
        max_tokens: fc.integer({ min: 1, max: 30 }),
        temperature: fc.constantFrom(0, 1, null),
        top_p: fc.constantFrom(0.5, 1),
        user: fc.constant('me'),
      },
      { requiredKeys: ['prompt', 'seed'] },
    );
    const property = fc.asyncProperty(request, async params => {
      const base = params as CompletionParams & { stream?: false };
      const { choices, usage } = await api.completions.create(base);
      const stream = await api.completions.create({
        ...base,
        stream: true,
        stream_options: { include_usage: true },
      });
      const chunks = await collectAll(stream);
      expect(fold(chunks).map(({ text }) => text)).toEqual(choices.map(({ text }) => text));
      for (const { reasons } of fold(chunks)) {
        expect(reasons.pop()).toBe('length');
        expect(new Set(reasons)).toEqual(new Set(reasons.length > 0 ? [null] : []));
      }
      expect(new Set(chunks.map(({ id }) => id)).size).toBe(1);
      const { prompt_tokens, completion_tokens } = chunks.at(-1)?.usage ?? {};
      expect([prompt_tokens, completion_tokens]).toEqual([
        usage.prompt_tokens,
        usage.completion_tokens,
      ]);
      for (const chunk of chunks.slice(0, -1)) expect(chunk.usage).toBeNull();
    });
    await fc.assert(property, { numRuns: 30 });
  });

  it('begin with the prompt on request, and end at a text', async () => {
    const { api } = await loadApi(says('Once', ' upon a time'));
    const params = { prompt: 'Once', echo: true, stop: ' a' };
    const { choices, usage } = await api.completions.create(params);
    expect(choices).toMatchObject([{ text: 'Once upon', finish_reason: 'stop' }]);
    expect(usage).toMatchObject({ prompt_tokens: 4, completion_tokens: 5 });
    const chunks = await collectAll(await api.completions.create({ ...params, stream: true }));
    expect(fold(chunks)).toMatchObject([{ text: 'Once upon' }]);
  });

  it('tell log-probabilities on request, whole and streamed', async () => {
    const { api } = await loadApi();
    const params = { prompt: 'é', seed: 1, max_tokens: 4, logprobs: 3, echo: true };
    const { choices } = await api.completions.create(params);
    const { text, logprobs } = choices[0] ?? {};
    expect(logprobs?.tokens.join('')).toBe(text);
    expect(logprobs?.tokens).toHaveLength(6);
    // As OpenAI's API has it: nothing comes before the prompt's first token.
    expect(logprobs?.token_logprobs[0]).toBeNull();
    for (const logprob of logprobs?.token_logprobs.slice(1) ?? []) expect(logprob).toBeLessThan(0);
    expect(logprobs?.top_logprobs[0]).toBeNull();
    const sizes = logprobs?.top_logprobs.slice(1).map(top => Object.keys(top ?? {}).length);
    // The second is half a character; all such read the same.
    expect(sizes).toEqual([1, 3, 3, 3, 3]);
    expect(logprobs?.text_offset).toEqual([0, 0, 1, 2, 3, 4]);
    const chunks = await collectAll(await api.completions.create({ ...params, stream: true }));
    const parts = chunks.flatMap(({ choices: [choice] }) => choice?.logprobs ?? []);
    for (const name of ['tokens', 'token_logprobs', 'top_logprobs', 'text_offset'] as const) {
      expect(parts.flatMap(part => part[name] as unknown[])).toEqual(logprobs?.[name]);
    }
    const without = await api.completions.create({ prompt: 'x', max_tokens: 1 });
    expect(without.choices[0]?.logprobs).toBeNull();
  });

  it('put out characters whole, and one that a stop token cuts off as U+FFFD', async () => {
    const { api } = await loadApi(says('x', 'é'));
    const stream = await api.completions.create({ prompt: 'x', stream: true });
    const chunks = await collectAll(stream);
    expect(fold(chunks)).toMatchObject([{ text: 'é' }]);
    expect(chunks).toHaveLength(2);
    const cut = await loadApi({ nextToken: ids => (ids.length === 1 ? 0xc3 : 256) });
    const half = await collectAll(await cut.api.completions.create({ prompt: 'x', stream: true }));
    expect(fold(half)).toEqual([{ text: '\uFFFD', reasons: ['stop'] }]);
  });

  it.each([
    [{ prompt: 5 }, 'prompt', /prompt must be a string or an array, not 5/],
    [{ prompt: [] }, 'prompt', /empty array/],
    [
      { prompt: ['a', null] },
      'prompt',
      /prompt\[1\] must be a string or an array of ids, not null/,
    ],
    [{ prompt: 'x', n: 0 }, 'n', /^n must be an integer from 1 to 128, not 0/],
    [{ prompt: 'x', stream: 'yes' }, 'stream', /stream must be true or false/],
    [{ prompt: 'x', stream_options: {} }, 'stream_options', /needs stream/],
    [{ prompt: 'x', stop: ['a', ''] }, 'stop', /stop must be a text/],
    [{ prompt: 'x', max_tokens: -1 }, 'max_tokens', /max_tokens must be an integer of at least 0/],
    [{ prompt: 'x', temperature: -1 }, 'temperature', /^temperature must be a finite number/],
    [{ prompt: 'x', top_p: 3 }, 'top_p', /^top_p must be a number above 0/],
    [{ prompt: 'x', top_k: 0.5 }, 'top_k', /^top_k must be an integer/],
    [{ prompt: 'x', seed: 'a' }, 'seed', /^seed must be an integer/],
    [{ prompt: 'x', suffix: 'the end' }, 'suffix', /cannot do what suffix asks for/],
    [{ prompt: 'x', best_of: 3 }, 'best_of', /cannot do what best_of asks for/],
    [{ prompt: 'x', tools: [{}] }, 'tools', /cannot do what tools asks for/],
    [{ prompt: 'x', toString: 1 }, 'toString', /no parameter "toString"/],
    [{ prompt: 'x', max_token: 1 }, 'max_token', /no parameter "max_token"/],
    [{ prompt: 'x', model: 'gpt-5' }, 'model', /no model "gpt-5"; the one there is: "kvasm"/],
    [null, null, /must be an object, not null/],
  ])('refuse what they cannot do: %j', async (params, param, message) => {
    const { api, wasm } = await loadApi();
    const error = await rejection(api.completions.create(params as CompletionParams));
    expect(error).toBeInstanceOf(OpenAIRequestError);
    expect(error).toMatchObject({ code: 'invalid-argument', param });
    expect((error as Error).message).toMatch(message);
    expect(wasm.steps).toBe(0);
  });

  it('pass parameters on under the names of the engine', async () => {
    const { api, wasm } = await loadApi();
    await api.completions.create({
      prompt: 'x',
      temperature: 0.5,
      top_p: 0.25,
      top_k: 7,
      min_p: 0.125,
      frequency_penalty: 1.5,
      presence_penalty: -0.5,
      repetition_penalty: 1.25,
      logit_bias: { '65': -100, '66': 3 },
    });
    expect(wasm.sequenceOptions.at(-1)).toMatchObject({
      temperature: 0.5,
      topP: 0.25,
      topK: 7,
      minP: 0.125,
      frequencyPenalty: 1.5,
      presencePenalty: -0.5,
      repetitionPenalty: 1.25,
      logitBias: [65, -100, 66, 3],
    });
  });

  it('take parameters that ask for nothing', async () => {
    const { api } = await loadApi();
    const params = { suffix: '', best_of: 1, tools: [], user: 'x', logit_bias: null, store: false };
    await api.completions.create({ prompt: 'x', ...params } as CompletionParams);
  });

  it('end with the signal, and when the loop over them is left', async () => {
    const { api, wasm } = await loadApi();
    const prompt = ['a', 'b'];
    const controller = new AbortController();
    const call = api.completions.create(
      { prompt, n: 2, max_tokens: 100 },
      { signal: controller.signal },
    );
    const reason = new Error('enough');
    controller.abort(reason);
    expect(await rejection(call)).toBe(reason);
    expect(await rejection(api.completions.create({ prompt }, { signal: controller.signal }))).toBe(
      reason,
    );
    const stream = await api.completions.create({ prompt, n: 2, max_tokens: 100, stream: true });
    for await (const _ of stream) break;
    await idle();
    expect(wasm.liveSequences).toBe(0);
  });

  it('end together when one fails', async () => {
    const { api, wasm } = await loadApi();
    const params = { prompt: ['a', 'x'.repeat(500)], max_tokens: 100 };
    for (const stream of [false, true]) {
      const call = api.completions
        .create({ ...params, stream } as CompletionParams & { stream: true })
        .then(chunks => (stream ? collectAll(chunks) : []));
      expect(await rejection(call)).toMatchObject({ code: 'context-full' });
      await idle();
      expect(wasm.liveSequences).toBe(0);
    }
  });
});

it('the one model can be listed', async () => {
  const { api } = await loadApi({}, { model: 'tale' });
  const { object, data } = await api.models.list();
  expect([object, data]).toEqual([
    'list',
    [{ id: 'tale', object: 'model', created: expect.any(Number), owned_by: 'kvasm' }],
  ]);
  expect((await api.completions.create({ model: 'tale', prompt: 'x' })).model).toBe('tale');
});
