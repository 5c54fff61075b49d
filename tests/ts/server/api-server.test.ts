import { once } from 'node:events';
import { request as httpRequest, type Server } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';

import { type ApiServerOptions, createApiServer } from '../../../bindings/ts/server/api-server.js';
import { EngineKeeper, type MortalEngine } from '../../../bindings/ts/server/engine-keeper.js';
import type { FakeOptions } from '../fake-wasm-module.js';
import { type Fixture, idle, loadFake } from '../harness.js';

const servers: Server[] = [];

afterEach(async () => {
  for (const server of servers.splice(0)) {
    server.close();
    server.closeAllConnections();
    await once(server, 'close');
  }
});

async function start(
  options: Partial<ApiServerOptions> = {},
  fake: FakeOptions = {},
  reload: () => Promise<MortalEngine> = () => Promise.reject(new Error('not here')),
) {
  const fixture: Fixture = await loadFake(fake);
  const server = createApiServer(new EngineKeeper(fixture.engine, reload), {
    model: 'tale',
    maxBody: 1000,
    allowedHosts: [],
    allowedOrigins: [],
    ...options,
  });
  servers.push(server);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return { ...fixture, port, url: `http://127.0.0.1:${port}` };
}

/** With any headers, which fetch would not send. */
async function send(
  port: number,
  path: string,
  { method = 'GET', headers = {}, body = '' }: { method?: string; headers?: object; body?: string },
) {
  const request = httpRequest({ port, path, method, headers: { ...headers } });
  request.end(body);
  const [response] = await once(request, 'response');
  let text = '';
  for await (const chunk of response) text += chunk;
  return { status: response.statusCode as number, headers: response.headers, text };
}

const post = (body: unknown, headers: object = {}) => ({
  method: 'POST',
  headers: { 'Content-Type': 'application/json', ...headers },
  body: JSON.stringify(body),
});

describe('the server', () => {
  it('lists its model', async () => {
    const { url } = await start();
    const list = await (await fetch(`${url}/v1/models`)).json();
    expect(list.data).toMatchObject([{ id: 'tale', object: 'model' }]);
    const one = await fetch(`${url}/v1/models/tale`);
    expect(await one.json()).toEqual(list.data[0]);
    expect((await fetch(`${url}/v1/models/other`)).status).toBe(404);
  });

  it('completes, whole and as events', async () => {
    const { url, engine } = await start();
    const { text } = await engine.generate('Once', { seed: 1, maxTokens: 9 }).result();
    const params = { prompt: 'Once', seed: 1, max_tokens: 9 };
    const whole = await fetch(`${url}/v1/completions`, post(params));
    expect((await whole.json()).choices[0].text).toBe(text);
    const events = await fetch(`${url}/v1/completions`, post({ ...params, stream: true }));
    expect(events.headers.get('content-type')).toBe('text/event-stream');
    const lines = (await events.text()).split('\n\n');
    expect(lines.slice(-2)).toEqual(['data: [DONE]', '']);
    const chunks = lines.slice(0, -2).map(line => JSON.parse(line.slice('data: '.length)));
    expect(chunks.map(({ choices }) => choices[0].text).join('')).toBe(text);
  });

  it('makes embeddings', async () => {
    const { url, engine } = await start();
    const answer = await fetch(`${url}/v1/embeddings`, post({ input: 'Once' }));
    const { data, usage } = await answer.json();
    expect(data[0].embedding).toEqual(Array.from(await engine.embed('Once')));
    expect(usage).toEqual({ prompt_tokens: 4, total_tokens: 4 });
    const refused = await fetch(`${url}/v1/embeddings`, post({ input: 7 }));
    expect(refused.status).toBe(400);
  });

  it('ends what a client has hung up on', async () => {
    const { url, wasm } = await start();
    for (const stream of [true, false]) {
      const controller = new AbortController();
      const body = post({ prompt: 'a', n: 3, max_tokens: 120, stream });
      const call = fetch(`${url}/v1/completions`, { ...body, signal: controller.signal });
      if (stream) await call;
      else call.catch(() => {});
      await idle();
      controller.abort();
      await expect.poll(() => wasm.liveSequences).toBe(0);
    }
  });

  it('computes requests that come at once as one batch', async () => {
    const { url, wasm } = await start();
    const body = post({ prompt: 'a', max_tokens: 60 });
    const calls = Array.from({ length: 4 }, () => fetch(`${url}/v1/completions`, body));
    for (const { status } of await Promise.all(calls)) expect(status).toBe(200);
    expect(wasm.widest).toBeGreaterThan(1);
  });

  it.each([
    ['/', {}, 404, /There is no "\/"; there are: \/v1\/models/],
    ['/v1/completions', {}, 405, /takes POST, not GET/],
    ['/v1/models', post({}), 405, /takes GET, not POST/],
    ['/v1/completions', post({ prompt: 'x' }, { 'Content-Type': 'text/plain' }), 415, /json, not/],
    ['/v1/completions', { ...post({}), body: '{"prompt": ' }, 400, /is not JSON in UTF-8/],
    ['/v1/completions', post({ prompt: 'x', temperature: -1 }), 400, /^temperature must be/],
    ['/v1/completions', post({ prompt: 'x', model: 'other' }), 404, /no model "other"/],
    ['/v1/completions', post({ prompt: 'x'.repeat(200) }), 400, /200 tokens/],
    ['/v1/completions', post({ prompt: 'x'.repeat(200), stream: true }), 400, /200 tokens/],
    ['/v1/completions', post({ prompt: 'x'.repeat(2000) }), 413, /2013 bytes; .* takes 1000/],
    ['/v1/completions', post([]), 400, /must be an object, not an array/],
  ])(
    'answers with an error in the shape of the API: $0, $2, $3',
    async (path, options, status, message) => {
      const { port } = await start();
      const response = await send(port, path, options);
      expect(response.status).toBe(status);
      const { error } = JSON.parse(response.text);
      expect(Object.keys(error)).toEqual(['message', 'type', 'param', 'code']);
      expect(error.type).toBe('invalid_request_error');
      expect(error.message).toMatch(message);
    },
  );

  it('says so when the engine is gone, and when it fails in the midst of a stream', async () => {
    const { url, engine } = await start(
      {},
      { onStep: step => (step === 9 ? { code: 'non-finite', message: 'NaN' } : undefined) },
    );
    const body = { prompt: 'x', max_tokens: 100 };
    const broken = await fetch(`${url}/v1/completions`, post({ ...body, stream: true }));
    expect(broken.status).toBe(200);
    const last = (await broken.text()).trim().split('\n\n').at(-1) ?? '';
    expect(JSON.parse(last.slice('data: '.length)).error).toMatchObject({
      type: 'server_error',
      code: 'non-finite',
    });
    expect((await fetch(`${url}/v1/completions`, post(body))).status).toBe(200);
    await engine.dispose();
    const gone = await fetch(`${url}/v1/completions`, post(body));
    expect(gone.status).toBe(503);
    expect((await gone.json()).error.code).toBe('disposed');
  });

  it('loads a crashed engine anew for the next request, and again if that fails', async () => {
    const other = await loadFake();
    let loads = 0;
    const { url, platform } = await start({}, {}, async () => {
      if (++loads === 1) throw new Error('no such model');
      return other.engine;
    });
    const ask = () => fetch(`${url}/v1/completions`, post({ prompt: 'x', seed: 1 }));
    expect((await ask()).status).toBe(200);
    platform.fail('it was ended');
    const refused = await ask();
    expect(refused.status).toBe(503);
    const { error } = await refused.json();
    expect(error.type).toBe('server_error');
    expect(error.message).toMatch(/cannot be loaded anew .*no such model/);
    for (let i = 0; i < 2; i++) expect((await ask()).status).toBe(200);
    expect(loads).toBe(2);
  });

  it('goes on after a client that sends half a request', async () => {
    const { port, url } = await start();
    const socket = connect(port, '127.0.0.1');
    const head = 'Content-Type: application/json\r\nContent-Length: 100\r\nHost: localhost';
    socket.write(`POST /v1/completions HTTP/1.1\r\n${head}\r\n\r\n{"prompt"`);
    await idle();
    socket.destroy();
    await idle();
    expect((await fetch(`${url}/v1/models`)).status).toBe(200);
  });
});

describe('the server keeps foreign pages out', () => {
  it.each(['127.0.0.1', '127.0.0.1:80', 'localhost:5', '[::1]:9', '192.168.0.9'])(
    'and answers to the host %s',
    async host => {
      const { port } = await start();
      expect((await send(port, '/v1/models', { headers: { Host: host } })).status).toBe(200);
    },
  );

  it.each(['evil.test', 'localhost.evil.test', '127.0.0.1.evil.test', 'box.local'])(
    'and not to the host %s, to which DNS may be rebound',
    async host => {
      const { port, wasm } = await start();
      const body = post({ prompt: 'x' }, { Host: host });
      const { status, text } = await send(port, '/v1/completions', body);
      expect([status, wasm.steps]).toEqual([403, 0]);
      expect(JSON.parse(text).error.message).toContain(host);
    },
  );

  it('and answers to a host that is allowed', async () => {
    const { port } = await start({ allowedHosts: ['box.local'] });
    const options = { headers: { Host: 'Box.local:80' } };
    expect((await send(port, '/v1/models', options)).status).toBe(200);
  });

  it('and lets no page in by default, whatever it sends', async () => {
    const { port, wasm } = await start();
    for (const origin of ['http://evil.test', 'null', `http://127.0.0.1:${port}`]) {
      for (const method of ['POST', 'OPTIONS']) {
        const headers = { Origin: origin };
        const body = method === 'POST' ? post({ prompt: 'x' }, headers) : { method, headers };
        const answer = await send(port, '/v1/completions', body);
        expect(answer.status).toBe(403);
        expect(answer.headers['access-control-allow-origin']).toBeUndefined();
      }
    }
    expect(wasm.steps).toBe(0);
  });

  it('and lets pages in that are allowed', async () => {
    const { port } = await start({ allowedOrigins: ['http://app.test'] });
    const preflight = await send(port, '/v1/completions', {
      method: 'OPTIONS',
      headers: {
        Origin: 'http://app.test',
        'Access-Control-Request-Method': 'POST',
        'Access-Control-Request-Headers': 'authorization,content-type',
      },
    });
    expect(preflight.status).toBe(204);
    expect(preflight.headers).toMatchObject({
      'access-control-allow-origin': 'http://app.test',
      'access-control-allow-methods': 'POST',
      'access-control-allow-headers': 'authorization,content-type',
      vary: 'Origin',
    });
    const body = post({ prompt: 'x' }, { Origin: 'http://app.test' });
    const answer = await send(port, '/v1/completions', body);
    expect(answer.status).toBe(200);
    expect(answer.headers['access-control-allow-origin']).toBe('http://app.test');
    const other = await send(port, '/v1/models', { headers: { Origin: 'http://app.test.evil' } });
    expect(other.status).toBe(403);
  });
});
