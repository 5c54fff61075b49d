import { expect, it } from 'vitest';
import { GenerationError, InvalidArgumentError } from '../../bindings/ts/errors.js';
import { loadFake, rejection } from './harness.js';

it('gives the weights of all heads of a layer, with the tokens and their texts', async () => {
  const { engine, wasm } = await loadFake();
  const { tokens, texts, layer, heads, weights } = await engine.attention('abc', { layer: 1 });
  expect([...tokens]).toEqual([97, 98, 99]);
  expect(texts).toEqual(['a', 'b', 'c']);
  expect({ layer, heads }).toEqual({ layer: 1, heads: [0, 1] });
  expect(weights).toHaveLength(2 * 3 * 3);
  expect(weights[0]).toBe(100 - 1);
  expect([...weights.subarray(3, 9)]).toEqual([0.5, 0.5, 0, 1 / 3, 1 / 3, 1 / 3].map(Math.fround));
  expect(wasm.liveAttentions).toBe(0);
});

it('gives one head, and takes ids', async () => {
  const { engine } = await loadFake();
  const { tokens, heads, weights } = await engine.attention([5n, 6n], { layer: 0, head: 1 });
  expect([...tokens]).toEqual([5, 6]);
  expect(heads).toEqual([1]);
  expect(weights).toHaveLength(4);
  expect(weights[0]).toBe(1);
});

it.each([
  [{ layer: 2 }, 'layer must be an integer from 0 to 1, not 2.'],
  [{ layer: 0, head: 2 }, 'head must be an integer from 0 to 1, not 2.'],
  [{ layer: 0, head: -1 }, 'head must be an integer from 0 to 1, not -1.'],
  [{ layer: 0, heads: 1 }, 'attention has no option "heads"; the closest is "head", of: layer,'],
])('refuses %o', async (options, message) => {
  const { engine } = await loadFake();
  const error = await rejection(engine.attention('abc', options));
  expect(error).toBeInstanceOf(InvalidArgumentError);
  expect(String(error)).toContain(message);
});

it('refuses an empty prompt', async () => {
  const { engine } = await loadFake();
  expect(await rejection(engine.attention('', { layer: 0 }))).toBeInstanceOf(InvalidArgumentError);
});

it('tells what the engine cannot do, frees all, and stays usable', async () => {
  const attentionStatus = { code: 'out-of-memory', message: 'not enough memory' };
  const { engine, wasm } = await loadFake({ attentionStatus });
  const error = await rejection(engine.attention('abc', { layer: 0 }));
  expect(error).toBeInstanceOf(GenerationError);
  expect(error).toMatchObject({ code: 'out-of-memory' });
  expect(wasm.liveAttentions).toBe(0);
  const tooLong = await rejection(engine.attention('a'.repeat(200), { layer: 0 }));
  expect(tooLong).toMatchObject({ code: 'context-full' });
  expect((await engine.generate('a', { maxTokens: 2 }).result()).tokens).toHaveLength(2);
});
