/** OpenAI's HTTP API over an engine. */

import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';

import { describe } from '../describe.js';
import { formatEvent } from '../openai/event-stream.js';
import { createOpenAI, type OpenAICompatible } from '../openai/index.js';
import type { EmbeddingEngine } from '../text-engine.js';
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
export function createApiServer(engine: EmbeddingEngine, options: ApiServerOptions): Server {
  const routes = makeRoutes(createOpenAI(engine, { model: options.model }), options.model);
  return createServer((request, response) => {
    const hungUp = new AbortController();
    response.on('close', () => hungUp.abort());
    handle(request, response, routes, options, hungUp.signal).catch(error => {
      if (hungUp.signal.aborted) return;
      fail(response, error);
    });
  });
}

function makeRoutes(api: OpenAICompatible, model: string): ReadonlyMap<string, Route> {
  return new Map<string, Route>([
    ['/v1/models', { method: 'GET', answer: () => api.models.list() }],
    [
      `/v1/models/${encodeURIComponent(model)}`,
      { method: 'GET', answer: async () => (await api.models.list()).data[0] },
    ],
    // What a body is, `create` checks itself.
    [
      '/v1/completions',
      {
        method: 'POST',
        answer: (body, signal) => api.completions.create(body as object, { signal }),
      },
    ],
    [
      '/v1/chat/completions',
      {
        method: 'POST',
        answer: (body, signal) =>
          api.chat.completions.create(body as { messages: never }, { signal }),
      },
    ],
    [
      '/v1/embeddings',
      {
        method: 'POST',
        answer: (body, signal) => api.embeddings.create(body as { input: never }, { signal }),
      },
    ],
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
