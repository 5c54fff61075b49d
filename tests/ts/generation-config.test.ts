import { describe, expect, it } from 'vitest';

import { ModelError } from '../../bindings/ts/errors.js';
import { readGenerationConfig } from '../../bindings/ts/worker/generation-config.js';
import { FakeWasm } from './fake-wasm-module.js';
import { FakePlatform, loadOn, modelFiles, rejection } from './harness.js';

const read = (config: Record<string, unknown>) => readGenerationConfig(config, 'there');

function load(generationConfig: unknown) {
  const text =
    typeof generationConfig === 'string' ? generationConfig : JSON.stringify(generationConfig);
  const wasm = new FakeWasm();
  const files = modelFiles({ 'generation_config.json': new Blob([text]) });
  return { wasm, engine: loadOn(new FakePlatform(wasm), files) };
}

describe('generation_config.json', () => {
  it('names options as transformers does', () => {
    const config = {
      do_sample: true,
      temperature: 0.8,
      top_k: 50,
      top_p: 0.9,
      min_p: 0.05,
      repetition_penalty: 1.2,
      max_new_tokens: 100,
      eos_token_id: 7,
    };
    expect(read(config)).toEqual({
      temperature: 0.8,
      topK: 50,
      topP: 0.9,
      minP: 0.05,
      repetitionPenalty: 1.2,
      maxTokens: 100,
      stopTokens: [7],
    });
    expect(read({ eos_token_id: [7, 8] })).toEqual({ stopTokens: [7, 8] });
  });

  it('is greedy where do_sample is false, whatever the temperature', () => {
    expect(read({ do_sample: false, temperature: 0.8 })).toEqual({ temperature: 0 });
    expect(read({ do_sample: false })).toEqual({ temperature: 0 });
  });

  it('may leave out what it likes, by null too, and say what kvasm has no option for', () => {
    expect(read({})).toEqual({});
    expect(read({ temperature: null, num_beams: 4, bos_token_id: 1 })).toEqual({});
  });

  it.each([
    [{ temperature: '0.8' }, 'there: temperature must be a number of at least 0, not "0.8".'],
    [{ temperature: -1 }, /temperature .* not -1\.$/],
    [{ top_k: 1.5 }, 'there: top_k must be an integer of at least 0, not 1.5.'],
    [{ top_p: 0 }, 'there: top_p must be a number above 0 and up to 1, not 0.'],
    [{ min_p: 2 }, 'there: min_p must be a number from 0 to 1, not 2.'],
    [{ repetition_penalty: 0 }, 'there: repetition_penalty must be a number above 0, not 0.'],
    [{ max_new_tokens: -5 }, 'there: max_new_tokens must be an integer of at least 0, not -5.'],
    [
      { eos_token_id: 'x' },
      'there: eos_token_id must be a token id, or an array of them, not "x".',
    ],
    [{ eos_token_id: [1, null] }, /^there: eos_token_id must be a token id/],
    [{ do_sample: 1 }, 'there: do_sample must be true or false, not 1.'],
  ])('is refused: %j', (config, message) => {
    expect(() => read(config)).toThrow(ModelError);
    expect(() => read(config)).toThrow(message);
  });

  it('makes the defaults of the engine, which options of generate override', async () => {
    const { wasm, engine: loading } = load({ temperature: 0.5, top_p: 0.9, max_new_tokens: 3 });
    const engine = await loading;
    expect(engine.info.defaults).toEqual({ temperature: 0.5, topP: 0.9, maxTokens: 3 });
    expect((await engine.generate('a').result()).tokens).toHaveLength(3);
    expect((await engine.generate('a', { topP: 1, maxTokens: 2 }).result()).tokens).toHaveLength(2);
    expect(wasm.sequenceOptions).toMatchObject([
      { temperature: 0.5, topP: 0.9 },
      { temperature: 0.5, topP: 1 },
    ]);
  });

  it('ends runs at its ids, but for those that the model does not have', async () => {
    const engine = await load({ eos_token_id: [97, 50256] }).engine;
    expect(engine.info.defaults).toEqual({ stopTokens: [97] });
    const engineWithout = await load({ eos_token_id: 50256 }).engine;
    expect(engineWithout.info.defaults).toEqual({});
    expect(engineWithout.info.endOfText).toBe(256);
  });

  it.each(['{', '[]', '5', { top_p: 7 }])('ends the load where it is broken: %j', async broken => {
    const error = await rejection(load(broken).engine);
    expect(error).toBeInstanceOf(ModelError);
    expect(error).toMatchObject({
      code: 'invalid-config',
      message: expect.stringMatching(/^generation_config\.json: /),
    });
  });
});
