import type OpenAI from 'openai';
import { describe, expect, it } from 'vitest';

import type { EmbeddingParams } from '../../../bindings/ts/openai/index.js';
import { loadApi } from './support.js';

describe('embeddings', () => {
  it('are those of the engine, for each input, in the shape of the API', async () => {
    const { api, engine } = await loadApi({}, { model: 'tale' });
    const cases: [EmbeddingParams['input'], number[][]][] = [
      ['abc', [[97, 98, 99]]],
      [
        ['abc', 'd'],
        [[97, 98, 99], [100]],
      ],
      [[97, 98], [[97, 98]]],
      [
        [[97], [98, 99]],
        [[97], [98, 99]],
      ],
    ];
    for (const [input, prompts] of cases) {
      const response: OpenAI.CreateEmbeddingResponse = await api.embeddings.create({ input });
      const vectors = await Promise.all(prompts.map(prompt => engine.embed(prompt)));
      const data = vectors.map((vector, index) => {
        return { object: 'embedding', index, embedding: Array.from(vector) };
      });
      const tokens = prompts.flat().length;
      const usage = { prompt_tokens: tokens, total_tokens: tokens };
      expect(response).toEqual({ object: 'list', data, model: 'tale', usage });
    }
  });

  it('are the same bits as text', async () => {
    const { api } = await loadApi();
    const params = { input: ['ab', 'c'], dimensions: 8, user: 'u' };
    const numbers = await api.embeddings.create(params);
    const texts = await api.embeddings.create({ ...params, encoding_format: 'base64' });
    const read = texts.data.map(({ embedding }) => {
      const { buffer, byteOffset, byteLength } = new Uint8Array(Buffer.from(embedding, 'base64'));
      return Array.from(new Float32Array(buffer, byteOffset, byteLength / 4));
    });
    expect(read).toEqual(numbers.data.map(({ embedding }) => embedding));
  });

  it.each([
    [{}, /^input must be a string or an array, not undefined/, 'input'],
    [{ input: [] }, /^input is an empty array/, 'input'],
    [{ input: ['a', null] }, /^input\[1\] must be a string or an array of ids, not null/, 'input'],
    [{ input: '' }, /prompt is empty/, 'input'],
    [{ input: [[1, 300]] }, /^input\[1\] must be .*300/, 'input'],
    [
      { input: 'a', encoding_format: 'int8' },
      /^encoding_format must be "float" or/,
      'encoding_format',
    ],
    [{ input: 'a', dimensions: 4 }, /^dimensions must be 8, .* not 4/, 'dimensions'],
    [{ input: 'a', temperature: 1 }, /no parameter "temperature"/, 'temperature'],
    [{ input: 'a', model: 'other' }, /no model "other"/, 'model'],
  ])('are refused: %j', async (params, message, param) => {
    const { api, wasm } = await loadApi();
    const refused = api.embeddings.create(params as EmbeddingParams);
    await expect(refused).rejects.toMatchObject({ message: expect.stringMatching(message), param });
    expect(wasm.liveSequences).toBe(0);
  });

  it('of a text that is too long are an error of the engine', async () => {
    const { api } = await loadApi();
    const refused = api.embeddings.create({ input: 'x'.repeat(200) });
    await expect(refused).rejects.toMatchObject({ code: 'context-full' });
  });

  it('end together, by a signal or when one fails', async () => {
    const { api, wasm } = await loadApi({ prefillChunk: 1 });
    const input = ['a'.repeat(100), 'b'.repeat(100)];
    const controller = new AbortController();
    const call = api.embeddings.create({ input }, { signal: controller.signal });
    controller.abort(new Error('enough'));
    await expect(call).rejects.toThrow('enough');
    await expect(api.embeddings.create({ input: [...input, ''] })).rejects.toThrow(/empty/);
    await expect.poll(() => wasm.liveSequences).toBe(0);
    const { signal } = controller;
    await expect(api.embeddings.create({ input: 'a' }, { signal })).rejects.toThrow('enough');
  });
});
