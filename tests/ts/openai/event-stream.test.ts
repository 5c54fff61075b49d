import { describe, expect, it } from 'vitest';

import { GenerationError } from '../../../bindings/ts/errors.js';
import { errorResponse, toEventStream } from '../../../bindings/ts/openai/index.js';
import { idle } from '../harness.js';
import { loadApi } from './support.js';

const read = (stream: ReadableStream<Uint8Array>) => new Response(stream).text();

describe('an event stream', () => {
  it('has an event for each chunk, and [DONE]', async () => {
    async function* chunks() {
      yield { a: 'line\nbreak' };
      yield { b: 2 };
    }
    const text = await read(toEventStream(chunks()));
    expect(text).toBe('data: {"a":"line\\nbreak"}\n\ndata: {"b":2}\n\ndata: [DONE]\n\n');
  });

  it('has an error in the midst as its last event', async () => {
    async function* chunks() {
      yield { a: 1 };
      throw new GenerationError('out-of-memory', 'No room.');
    }
    const text = await read(toEventStream(chunks()));
    const body = errorResponse(new GenerationError('out-of-memory', 'No room.')).body;
    expect(text).toBe(`data: {"a":1}\n\ndata: ${JSON.stringify(body)}\n\n`);
  });

  it('ends the generation when it is cancelled', async () => {
    const { api, wasm } = await loadApi();
    const chunks = await api.completions.create({ prompt: 'x', max_tokens: 100, stream: true });
    const reader = toEventStream(chunks).getReader();
    await reader.read();
    await reader.cancel();
    await idle();
    expect(wasm.liveSequences).toBe(0);
  });
});

it('what is no error of kvasm tells nothing of itself to clients', () => {
  const { status, body } = errorResponse(new TypeError('secret'));
  expect(status).toBe(500);
  expect(body.error).toMatchObject({ type: 'server_error', code: null });
  expect(JSON.stringify(body)).not.toContain('secret');
});
