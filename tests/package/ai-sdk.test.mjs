// The language model under Vercel's AI SDK itself.

import assert from 'node:assert/strict';
import { join } from 'node:path';
import { after, before, test } from 'node:test';

// It asks for a newer Node than the package does, and may stop to run in this one.
const sdk = await import('ai').catch(error => ({ missing: error.message }));
const skip = sdk.missing && `the AI SDK does not run in Node ${process.version}: ${sdk.missing}`;
const { Engine } = await import('../../dist/node.js');
const { createLanguageModel } = await import('../../dist/ai-sdk/index.js');
let engine;
let model;

before(async () => {
  engine = await Engine.load(join(import.meta.dirname, '../../models/fairy-tale'));
  model = createLanguageModel(engine, { modelId: 'fairy-tale' });
});

after(() => engine?.dispose());

test('generateText continues a prompt, and tells the usage', { skip }, async () => {
  const prompt = 'Once upon a time';
  const expected = await engine.generate(prompt, { maxTokens: 20, temperature: 0 }).result();
  const result = await sdk.generateText({ model, prompt, maxOutputTokens: 20, temperature: 0 });
  assert.equal(result.text, expected.text);
  assert.equal(result.finishReason, 'length');
  assert.equal(result.usage.inputTokens, expected.usage.prompt);
  assert.equal(result.usage.outputTokens, 20);
  assert.equal(result.response.modelId, 'fairy-tale');
});

test('streamText gives the same text in pieces', { skip }, async () => {
  const settings = { prompt: 'There was', maxOutputTokens: 30, seed: 4 };
  const whole = await sdk.generateText({ model, ...settings });
  const stream = sdk.streamText({ model, ...settings });
  const pieces = [];
  for await (const piece of stream.textStream) pieces.push(piece);
  assert.ok(pieces.length > 1);
  assert.equal(pieces.join(''), whole.text);
  assert.equal(await stream.finishReason, 'length');
  assert.equal((await stream.usage).outputTokens, 30);
});

test('streamText ends with its signal', { skip }, async () => {
  const controller = new AbortController();
  const stream = sdk.streamText({
    model,
    prompt: 'There was',
    abortSignal: controller.signal,
    providerOptions: { kvasm: { overflow: 'shift' } },
  });
  let aborted = false;
  for await (const { type } of stream.fullStream) {
    if (type === 'text-delta') controller.abort();
    aborted ||= type === 'abort';
  }
  assert.ok(aborted);
  assert.equal((await engine.memory()).kv.used, 0);
});

test('what cannot be done is a warning, or an error of the call', { skip }, async () => {
  const warnings = [];
  globalThis.AI_SDK_LOG_WARNINGS = ({ warnings: given }) => warnings.push(...given);
  const prompt = 'There was';
  const tools = { add: sdk.tool({ inputSchema: sdk.jsonSchema({ type: 'object' }) }) };
  const { text } = await sdk.generateText({ model, prompt, tools, maxOutputTokens: 5 });
  assert.ok(text.length > 0);
  assert.deepEqual(
    warnings.map(({ feature }) => feature),
    ['tools'],
  );
  const wrong = { kvasm: { topKay: 1 } };
  await assert.rejects(sdk.generateText({ model, prompt, providerOptions: wrong }), {
    code: 'invalid-argument',
  });
});
