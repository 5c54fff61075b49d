/** OpenAI's HTTP API over an engine. */

import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';

import { describe } from '../describe.js';
import { formatEvent } from '../openai/event-stream.js';
import { type CallOptions, createOpenAI, type OpenAICompatible } from '../openai/index.js';
import type { EngineKeeper, MortalEngine } from './engine-keeper.js';
import { type GuardOptions, guard } from './guard.js';
import { HttpError, toResponse } from './http-error.js';
import { readJson } from './read-json.js';

/** How the server answers. */
export interface ApiServerOptions extends GuardOptions {
  /** The model's name. */
  readonly model: string;
  /** The largest request, in bytes. */
  readonly maxBody: number;
}

interface Route {
  readonly method: 'GET' | 'POST';
  answer(body: unknown, signal: AbortSignal): Promise<unknown>;
}

/** A server that does not listen yet. A client that hangs up ends its generations. */
export function createApiServer(keeper: EngineKeeper, options: ApiServerOptions): Server {
  const routes = makeRoutes(keeper, options.model);
  return createServer((request, response) => {
    const hungUp = new AbortController();
    response.on('close', () => hungUp.abort());
    handle(request, response, routes, options, hungUp.signal).catch(error => {
      if (hungUp.signal.aborted) return;
      fail(response, error);
    });
  });
}

function makeRoutes(keeper: EngineKeeper, model: string): ReadonlyMap<string, Route> {
  const apis = new WeakMap<MortalEngine, OpenAICompatible>();
  const getApi = async () => {
    const engine = await keeper.get();
    const api = apis.get(engine) ?? createOpenAI(engine, { model });
    apis.set(engine, api);
    return api;
  };
  const get = (answer: (api: OpenAICompatible) => Promise<unknown>): Route => {
    return { method: 'GET', answer: async () => answer(await getApi()) };
  };
  // What a body is, `create` checks itself.
  const post = (
    answer: (api: OpenAICompatible, body: never, options: CallOptions) => Promise<unknown>,
  ): Route => {
    return {
      method: 'POST',
      answer: async (body, signal) => answer(await getApi(), body as never, { signal }),
    };
  };
  return new Map([
    ['/v1/models', get(api => api.models.list())],
    [
      `/v1/models/${encodeURIComponent(model)}`,
      get(async api => (await api.models.list()).data[0]),
    ],
    ['/v1/completions', post((api, body, options) => api.completions.create(body, options))],
    [
      '/v1/chat/completions',
      post((api, body, options) => api.chat.completions.create(body, options)),
    ],
    ['/v1/embeddings', post((api, body, options) => api.embeddings.create(body, options))],
  ]);
}

async function handle(
  request: IncomingMessage,
  response: ServerResponse,
  routes: ReadonlyMap<string, Route>,
  options: ApiServerOptions,
  signal: AbortSignal,
): Promise<void> {
  response.setHeader('X-Content-Type-Options', 'nosniff');
  const origin = guard(request, options);
  if (origin !== undefined) {
    response.setHeader('Access-Control-Allow-Origin', origin);
    response.setHeader('Vary', 'Origin');
  }
  const [path = ''] = (request.url ?? '').split('?');
  const route = routes.get(path);
  if (!route) {
    const paths = [...routes.keys()].join(', ');
    throw new HttpError(404, `There is no ${describe(path)}; there are: ${paths}.`);
  }
  if (request.method === 'OPTIONS') {
    response.setHeader('Access-Control-Allow-Methods', route.method);
    // Clients of OpenAI's send many of their own.
    const headers = request.headers['access-control-request-headers'];
    if (headers !== undefined) response.setHeader('Access-Control-Allow-Headers', headers);
    response.writeHead(204).end();
    return;
  }
  if (request.method !== route.method) {
    const message = `${path} takes ${route.method}, not ${request.method}.`;
    throw new HttpError(405, message, { Allow: route.method });
  }
  const body = route.method === 'POST' ? await readJson(request, options.maxBody) : undefined;
  const answer = await route.answer(body, signal);
  if (isStream(answer)) await sendEvents(response, answer, signal);
  else sendJson(response, 200, answer);
}

function isStream(answer: unknown): answer is AsyncIterable<object> {
  return typeof answer === 'object' && answer !== null && Symbol.asyncIterator in answer;
}

async function sendEvents(
  response: ServerResponse,
  chunks: AsyncIterable<object>,
  signal: AbortSignal,
): Promise<void> {
  const send = async (data: object | '[DONE]') => {
    // Not before the first chunk: a run that fails at once has an error's status.
    if (!response.headersSent) {
      const headers = { 'Content-Type': 'text/event-stream', 'Cache-Control': 'no-cache' };
      response.writeHead(200, headers);
    }
    if (!response.write(formatEvent(data))) await once(response, 'drain', { signal });
  };
  for await (const chunk of chunks) await send(chunk);
  await send('[DONE]');
  response.end();
}

function sendJson(response: ServerResponse, status: number, body: unknown): void {
  response.writeHead(status, { 'Content-Type': 'application/json' }).end(JSON.stringify(body));
}

function fail(response: ServerResponse, error: unknown): void {
  const { status, body, headers } = toResponse(error);
  if (response.headersSent) {
    response.end(formatEvent(body));
    return;
  }
  for (const [name, value] of Object.entries(headers)) response.setHeader(name, value);
  sendJson(response, status, body);
}
