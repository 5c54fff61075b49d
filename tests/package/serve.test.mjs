// `kvasm serve` as its users meet it: by OpenAI's own client.

import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { promisify } from 'node:util';
import OpenAI from 'openai';

const run = promisify(execFile);
const repository = join(import.meta.dirname, '../..');
const cli = join(repository, 'dist/cli/main.js');
const { Engine } = await import('../../dist/node.js');
let server;
let baseURL;
let client;
let engine;

before(async () => {
  // The bundled model, a free port.
  const stdio = ['ignore', 'pipe', 'inherit'];
  const killable = ['--import', join(import.meta.dirname, 'support/killed-worker.mjs')];
  const args = [...killable, cli, 'serve', '--port', '0', '--kv-bytes', '60000000'];
  server = spawn(process.execPath, args, { stdio });
  const [line] = await once(server.stdout, 'data');
  baseURL = /^kvasm serves fairy-tale at (http:\/\/127\.0\.0\.1:\d+\/v1)\n$/.exec(line)?.[1];
  assert.ok(baseURL, String(line));
  client = new OpenAI({ baseURL, apiKey: 'none', maxRetries: 0 });
  engine = await Engine.load(join(repository, 'models/fairy-tale'));
});

after(async () => {
  await engine?.dispose();
  if (server?.exitCode === null) server.kill();
});

const model = 'fairy-tale';
const prompt = 'Once upon a time';

test('the models are listed', async () => {
  const { data } = await client.models.list();
  assert.deepEqual(
    data.map(({ id }) => id),
    [model],
  );
  assert.equal((await client.models.retrieve(model)).id, model);
});

test('a completion is what the engine generates', async () => {
  const expected = await engine.generate(prompt, { maxTokens: 20, seed: 3 }).result();
  const completion = await client.completions.create({ model, prompt, max_tokens: 20, seed: 3 });
  assert.equal(completion.choices[0].text, expected.text);
  assert.equal(completion.choices[0].finish_reason, 'length');
  assert.equal(completion.usage.completion_tokens, 20);
});

test('streams at once are what each is alone', async () => {
  const read = async seed => {
    const params = { model, prompt, max_tokens: 25, seed, stream: true };
    let text = '';
    for await (const chunk of await client.completions.create(params)) {
      text += chunk.choices[0].text;
    }
    return text;
  };
  const seeds = [1, 2, 3, 4];
  const together = await Promise.all(seeds.map(read));
  for (const [index, seed] of seeds.entries()) {
    const { text } = await engine.generate(prompt, { maxTokens: 25, seed }).result();
    assert.equal(together[index], text);
  }
});

test('a chat is answered, whole and as a stream', async () => {
  const messages = [
    { role: 'system', content: 'A talk about a fairy tale.' },
    { role: 'user', content: 'Who lives in the wood?' },
  ];
  const params = { model, messages, max_tokens: 20, temperature: 0 };
  const { choices } = await client.chat.completions.create(params);
  const { content } = choices[0].message;
  assert.equal(content, content.trimStart());
  assert.ok(content.length > 0);
  let text = '';
  const stream = client.chat.completions.stream(params);
  for await (const chunk of stream) text += chunk.choices[0].delta.content ?? '';
  assert.equal(text, content);
  assert.equal(await stream.finalContent(), content);
});

test('log-probabilities, several choices and an echo are had by its names', async () => {
  const params = { model, prompt, max_tokens: 5, n: 2, seed: 1, echo: true, logprobs: 2 };
  const { choices } = await client.completions.create(params);
  assert.equal(choices.length, 2);
  for (const { text, logprobs } of choices) {
    assert.ok(text.startsWith(prompt));
    assert.equal(logprobs.tokens.join(''), text);
    assert.equal(Object.keys(logprobs.top_logprobs.at(-1)).length, 2);
    assert.equal(logprobs.token_logprobs[0], null);
    assert.ok(logprobs.token_logprobs.slice(1).every(logprob => logprob < 0));
  }
});

test('embeddings are those of the engine, to the bit', async () => {
  const input = ['A king had three sons.', 'The wolf'];
  const expected = await Promise.all(input.map(text => engine.embed(text)));
  const lengths = await Promise.all(input.map(text => engine.tokenizer.encode(text)));
  const tokens = lengths.reduce((sum, { length }) => sum + length, 0);
  // The client asks for Base64 if it is not told what to ask for, and reads it.
  for (const format of [{}, { encoding_format: 'float' }]) {
    const { data, usage } = await client.embeddings.create({ model, input, ...format });
    for (const [i, { index, embedding }] of data.entries()) {
      assert.equal(index, i);
      assert.deepEqual(Float32Array.from(embedding), expected[i]);
    }
    assert.deepEqual(usage, { prompt_tokens: tokens, total_tokens: tokens });
  }
});

test('errors are those of the client', async () => {
  const wrong = client.completions.create({ model: 'gpt-5', prompt });
  await assert.rejects(wrong, OpenAI.NotFoundError);
  await assert.rejects(client.completions.create({ model, prompt, temperature: -1 }), error => {
    assert.ok(error instanceof OpenAI.BadRequestError);
    assert.equal(error.param, 'temperature');
    return true;
  });
  const endless = client.completions.create({ model, prompt: 'long '.repeat(3000) });
  await assert.rejects(endless, { code: 'context_length_exceeded', status: 400 });
});

test('a client that leaves its stream, or aborts, leaves the server free', async () => {
  const stream = await client.completions.create({ model, prompt, max_tokens: 400, stream: true });
  for await (const _ of stream) break;
  const controller = new AbortController();
  const call = client.completions.create(
    { model, prompt, max_tokens: 400 },
    { signal: controller.signal },
  );
  controller.abort();
  await assert.rejects(call, OpenAI.APIUserAbortError);
  const { choices } = await client.completions.create({ model, prompt, max_tokens: 2 });
  assert.equal(choices.length, 1);
});

test('when the worker is killed, its requests fail, and the next one has a new engine', async () => {
  const endless = { [engine.info.endOfText]: -100 };
  const params = { model, prompt, max_tokens: 400, stream: true, logit_bias: endless };
  const stream = await client.completions.create(params);
  let chunks = 0;
  await assert.rejects(async () => {
    for await (const _ of stream) if (chunks++ === 0) server.kill('SIGUSR2');
  }, /worker died/);
  const { text } = await engine.generate(prompt, { maxTokens: 9, seed: 4 }).result();
  const again = { model, prompt, max_tokens: 9, seed: 4 };
  const answers = await Promise.all([1, 2].map(() => client.completions.create(again)));
  for (const { choices } of answers) assert.equal(choices[0].text, text);
});

test('the example of a client runs', async () => {
  const example = join(repository, 'examples/openai-client/main.mjs');
  const { stdout } = await run(process.execPath, [example, baseURL]);
  assert.match(stdout, /^The model is fairy-tale\.\n\nOnce upon a time.{20}/s);
});

test('a port that is taken is wrong usage, and Ctrl-C ends the server', async () => {
  const { port } = new URL(baseURL);
  const second = await run(process.execPath, [cli, 'serve', '--port', port]).catch(e => e);
  assert.equal(second.code, 2);
  assert.match(second.stderr, /cannot listen: .*EADDRINUSE/);
  const exited = once(server, 'exit');
  server.kill('SIGINT');
  assert.deepEqual(await exited, [0, null]);
});
