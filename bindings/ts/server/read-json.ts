import type { IncomingMessage } from 'node:http';

import { describe } from '../describe.js';
import { HttpError } from './http-error.js';

/**
 * The JSON that a request brings.
 * @param limit In bytes.
 * @throws HttpError 400, 413, 415
 */
export async function readJson(request: IncomingMessage, limit: number): Promise<unknown> {
  const type = request.headers['content-type'];
  // A page may send other types to any server, without asking.
  if (!/^application\/json\s*(;|$)/i.test(type ?? '')) {
    request.resume();
    throw new HttpError(415, `The Content-Type must be application/json, not ${describe(type)}.`);
  }
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    size += chunk.length;
    // The rest is read and dropped, because a client that still writes does not read the answer.
    if (size <= limit) chunks.push(chunk);
    else chunks.length = 0;
  }
  if (size > limit) {
    throw new HttpError(413, `The request has ${size} bytes; the server takes ${limit}.`);
  }
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(Buffer.concat(chunks)));
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new HttpError(400, `The request is not JSON in UTF-8 (${reason}).`);
  }
}
