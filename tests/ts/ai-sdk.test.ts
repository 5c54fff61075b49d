import type {
  LanguageModelV4CallOptions,
  LanguageModelV4Message,
  LanguageModelV4StreamPart,
} from '@ai-sdk/provider';
import { describe, expect, it } from 'vitest';

import { createLanguageModel } from '../../bindings/ts/ai-sdk/index.js';
import { InvalidArgumentError } from '../../bindings/ts/errors.js';
import { idle, loadFake, rejection } from './harness.js';
import { says } from './openai/support.js';

const user = (text: string): LanguageModelV4Message => ({
  role: 'user',
  content: [{ type: 'text', text }],
});

async function partsOf(stream: ReadableStream<LanguageModelV4StreamPart>) {
  const parts: LanguageModelV4StreamPart[] = [];
  const reader = stream.getReader();
  for (let next = await reader.read(); !next.done; next = await reader.read()) {
    parts.push(next.value);
  }
  return parts;
}

describe('a language model of the AI SDK', () => {
  it('continues a lone message as it is', async () => {
    const { engine } = await loadFake(says('Once', ' upon'));
    const model = createLanguageModel(engine, { modelId: 'tale' });
    expect(model).toMatchObject({ specificationVersion: 'v4', provider: 'kvasm', modelId: 'tale' });
    const result = await model.doGenerate({ prompt: [user('Once')] });
    expect(result).toMatchObject({
      content: [{ type: 'text', text: ' upon' }],
      finishReason: { unified: 'stop', raw: 'stop' },
      usage: {
        inputTokens: { total: 4, noCache: 4, cacheRead: 0 },
        outputTokens: { total: 5, text: 5, reasoning: 0 },
      },
      warnings: [],
    });
  });

  it('streams the same in the order of the interface', async () => {
    const { engine } = await loadFake(says('Once', ' upon é'));
    const model = createLanguageModel(engine);
    const { stream } = await model.doStream({ prompt: [user('Once')], maxOutputTokens: 20 });
    const parts = await partsOf(stream);
    const types = parts.map(({ type }) => type);
    expect(types.slice(0, 3)).toEqual(['stream-start', 'response-metadata', 'text-start']);
    expect(new Set(types.slice(3, -2))).toEqual(new Set(['text-delta']));
    expect(types.slice(-2)).toEqual(['text-end', 'finish']);
    const deltas = parts.map(part => (part.type === 'text-delta' ? part.delta : ''));
    expect(deltas.join('')).toBe(' upon é');
    expect(parts.at(-1)).toMatchObject({ finishReason: { unified: 'stop' } });
  });

  it('passes settings on as options', async () => {
    const { engine, wasm } = await loadFake();
    const settings: LanguageModelV4CallOptions = {
      prompt: [user('x')],
      maxOutputTokens: 3,
      temperature: 0.5,
      topK: 4,
      topP: 0.25,
      seed: 6,
      presencePenalty: 0.75,
      frequencyPenalty: -1,
      providerOptions: { kvasm: { overflow: 'shift', nKeep: 1, minP: 0.125 }, other: { x: 1 } },
    };
    await createLanguageModel(engine).doGenerate(settings);
    expect(wasm.sequenceOptions.at(-1)).toMatchObject({
      temperature: 0.5,
      topK: 4,
      topP: 0.25,
      seedLow: 6,
      presencePenalty: 0.75,
      frequencyPenalty: -1,
      minP: 0.125,
      shift: true,
      nKeep: 1,
    });
  });

  it('takes a template, for all of its messages', async () => {
    const { engine, wasm } = await loadFake(says('system/user/', '  \n yes'));
    const model = createLanguageModel(engine, {
      chatTemplate: turns => ({ prompt: turns.map(({ role }) => `${role}/`).join(''), stop: [] }),
    });
    const prompt = [{ role: 'system' as const, content: 'Be brief.' }, user('Why?')];
    const { content } = await model.doGenerate({ prompt });
    expect(content).toEqual([{ type: 'text', text: 'yes' }]);
    const { stream } = await model.doStream({ prompt });
    const deltas = (await partsOf(stream)).filter(({ type }) => type === 'text-delta');
    expect(deltas[0]).toMatchObject({ delta: 'y' });
    expect(wasm.liveSequences).toBe(0);
  });

  it('warns of what it cannot do', async () => {
    const { engine } = await loadFake();
    const { warnings } = await createLanguageModel(engine).doGenerate({
      prompt: [user('x')],
      maxOutputTokens: 1,
      tools: [{ type: 'function', name: 'add', inputSchema: {} }],
      responseFormat: { type: 'json' },
      reasoning: 'high',
    });
    expect(warnings).toEqual(
      ['tools', 'responseFormat', 'reasoning'].map(feature => ({ type: 'unsupported', feature })),
    );
  });

  it.each<[LanguageModelV4CallOptions, RegExp]>([
    [
      {
        prompt: [
          {
            role: 'user',
            content: [
              { type: 'file', mediaType: 'image/png', data: { type: 'data', data: 'AA==' } },
            ],
          },
        ],
      },
      /reads text only, and no parts of the type "file"/,
    ],
    [{ prompt: [{ role: 'tool', content: [] }] }, /no messages of the role "tool"/],
    [{ prompt: [user('x')], topP: 2 }, /topP must be/],
  ])('refuses what it cannot read, whole and streamed: %j', async (call, message) => {
    const { engine } = await loadFake();
    const model = createLanguageModel(engine);
    for (const start of [() => model.doGenerate(call), () => model.doStream(call)]) {
      const error = await rejection(Promise.resolve().then(async () => void (await start())));
      expect(error).toBeInstanceOf(InvalidArgumentError);
      expect((error as Error).message).toMatch(message);
    }
  });

  it('ends when its stream is cancelled, and with the signal', async () => {
    const { engine, wasm } = await loadFake();
    const model = createLanguageModel(engine);
    const cancelled = await model.doStream({ prompt: [user('x')] });
    await cancelled.stream.cancel();
    const controller = new AbortController();
    const aborted = await model.doStream({
      prompt: [user('y')],
      abortSignal: controller.signal,
    });
    const reason = new Error('enough');
    controller.abort(reason);
    expect(await rejection(partsOf(aborted.stream))).toBe(reason);
    await idle();
    expect(wasm.liveSequences).toBe(0);
  });

  it('refuses options that it does not have', async () => {
    const { engine } = await loadFake();
    expect(() => createLanguageModel(engine, { model: 'x' } as never)).toThrow(/no option "model"/);
  });
});
