import type OpenAI from 'openai';
import { describe, expect, it } from 'vitest';

import { OpenAIRequestError } from '../../../bindings/ts/openai/index.js';
import type { ChatCompletionParams, ChatMessage } from '../../../bindings/ts/openai/types.js';
import { rejection } from '../harness.js';
import { collectAll, loadApi, says } from './support.js';

const messages: ChatMessage[] = [{ role: 'user', content: 'Hi' }];
const prompt = 'User: Hi\nAssistant:';

describe('chat completions', () => {
  it('answer until the other speaks, in the shape of the API', async () => {
    const { api } = await loadApi(says(prompt, ' Hello!\nHow are you?\nUser: Fine'));
    const answer: OpenAI.ChatCompletion = await api.chat.completions.create({ messages });
    expect(answer).toEqual({
      id: expect.stringMatching(/^chatcmpl-[0-9a-f]{24}$/),
      object: 'chat.completion',
      created: expect.any(Number),
      model: 'kvasm',
      system_fingerprint: 'simd',
      choices: [
        {
          index: 0,
          message: { role: 'assistant', content: 'Hello!\nHow are you?', refusal: null },
          logprobs: null,
          finish_reason: 'stop',
        },
      ],
      usage: {
        prompt_tokens: prompt.length,
        completion_tokens: ' Hello!\nHow are you?'.length,
        total_tokens: prompt.length + ' Hello!\nHow are you?'.length,
        prompt_tokens_details: { cached_tokens: 0 },
      },
    });
  });

  it('streamed say the same as whole', async () => {
    const { api } = await loadApi({}, { chatTemplate: () => ({ prompt: 'x', stop: ['a', 'q'] }) });
    for (let seed = 0; seed < 10; seed++) {
      const params = { messages, n: 2, seed, max_tokens: 30 };
      const whole = await api.chat.completions.create(params);
      const stream = await api.chat.completions.create({
        ...params,
        stream: true,
        stream_options: { include_usage: true },
      });
      const chunks = await collectAll(stream);
      const client: OpenAI.ChatCompletionChunk[] = chunks;
      expect(client[0]?.choices[0]?.delta).toEqual({ role: 'assistant', content: '' });
      for (const { index, message, finish_reason } of whole.choices) {
        const parts = chunks.flatMap(({ choices }) => choices.filter(part => part.index === index));
        expect(parts.map(({ delta }) => delta.content ?? '').join('')).toBe(message.content);
        expect(parts.at(-1)).toMatchObject({ delta: {}, finish_reason });
        expect(parts.filter(({ delta }) => delta.role)).toHaveLength(1);
      }
      expect(chunks.at(-1)?.choices).toEqual([]);
      const { completion_tokens, prompt_tokens } = chunks.at(-1)?.usage ?? {};
      const { usage } = whole;
      expect([completion_tokens, prompt_tokens]).toEqual([
        usage.completion_tokens,
        usage.prompt_tokens,
      ]);
    }
  });

  it('end at texts of the request, too', async () => {
    const { api } = await loadApi(says(prompt, ' one two three'));
    for (const stop of [' three', [' x', ' three'], ['e', ' t']] as const) {
      const params = { messages, stop } as ChatCompletionParams & { stream?: false };
      const { choices } = await api.chat.completions.create(params);
      expect(choices[0]?.message.content).toBe(stop[0] === 'e' ? 'on' : 'one two');
    }
  });

  it('go on where the assistant was, white space included', async () => {
    const open: ChatMessage[] = [...messages, { role: 'assistant', content: 'Hel' }];
    const { api } = await loadApi(says('User: Hi\nAssistant: Hel', ' lo'));
    const { choices } = await api.chat.completions.create({ messages: open });
    expect(choices[0]?.message.content).toBe(' lo');
  });

  it('read messages as clients send them', async () => {
    const sent = [
      {
        role: 'system',
        content: [
          { type: 'text', text: 'Be ' },
          { type: 'text', text: 'brief.' },
        ],
      },
      { role: 'user', content: 'Hi', name: 'Ann' },
      { role: 'assistant', content: 'Yo', refusal: null, tool_calls: [], annotations: [] },
      { role: 'user', content: 'Why?' },
    ];
    const seen: unknown[] = [];
    const chatTemplate = (turns: unknown) => {
      seen.push(turns);
      return { prompt: 'x', stop: [] };
    };
    const { api } = await loadApi({}, { chatTemplate });
    await api.chat.completions.create({ messages: sent as ChatMessage[], max_tokens: 1 });
    expect(seen).toEqual([
      [
        { role: 'system', content: 'Be brief.' },
        { role: 'user', content: 'Hi', name: 'Ann' },
        { role: 'assistant', content: 'Yo' },
        { role: 'user', content: 'Why?' },
      ],
    ]);
  });

  it('tell log-probabilities on request', async () => {
    const { api } = await loadApi();
    const params = { messages, seed: 1, max_tokens: 4, logprobs: true, top_logprobs: 2 };
    const { choices } = await api.chat.completions.create(params);
    const content = choices[0]?.logprobs?.content ?? [];
    expect(content).toHaveLength(4);
    expect(
      content
        .map(({ token }) => token)
        .join('')
        .trimStart(),
    ).toBe(choices[0]?.message.content);
    for (const { logprob, top_logprobs } of content) {
      expect(logprob).toBeLessThanOrEqual(0);
      expect(top_logprobs).toHaveLength(2);
    }
    const stream = await api.chat.completions.create({ ...params, stream: true });
    const parts = (await collectAll(stream)).flatMap(({ choices: [choice] }) => choice ?? []);
    expect(parts.flatMap(({ logprobs }) => logprobs?.content ?? [])).toEqual(content);
  });

  it.each([
    [{}, 'messages', /messages must be an array, not undefined/],
    [{ messages: [] }, 'messages', /empty array/],
    [{ messages: ['Hi'] }, 'messages[0]', /messages\[0\] must be an object/],
    [
      { messages: [{ role: 'tool', content: 'x' }] },
      'messages[0].role',
      /must be one of system, developer, user, assistant, not "tool"/,
    ],
    [{ messages: [{ role: 'user' }] }, 'messages[0].content', /a string or an array of parts/],
    [
      { messages: [{ role: 'user', content: [{ type: 'image_url', image_url: {} }] }] },
      'messages[0].content',
      /a part of the type "text" with a text, not "image_url"/,
    ],
    [
      { messages: [{ role: 'assistant', content: '', tool_calls: [{}] }] },
      'messages[0].tool_calls',
      /has "tool_calls", which kvasm does not know/,
    ],
    [{ messages, tools: [{}] }, 'tools', /cannot do what tools asks for/],
    [{ messages, response_format: { type: 'json_object' } }, 'response_format', /cannot do/],
    [{ messages, reasoning_effort: 'high' }, 'reasoning_effort', /cannot do/],
    [{ messages, top_logprobs: 2 }, 'top_logprobs', /needs logprobs: true/],
    [{ messages, max_completion_tokens: 1.5 }, 'max_completion_tokens', /must be an integer/],
  ])('refuse what they cannot do: %j', async (params, param, message) => {
    const { api } = await loadApi();
    const error = await rejection(api.chat.completions.create(params as ChatCompletionParams));
    expect(error).toBeInstanceOf(OpenAIRequestError);
    expect(error).toMatchObject({ param, message: expect.stringMatching(message) });
  });
});
