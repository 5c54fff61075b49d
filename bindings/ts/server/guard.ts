import type { IncomingMessage } from 'node:http';
import { isIP } from 'node:net';

import { describe } from '../describe.js';
import { HttpError } from './http-error.js';

/** Whom a server on this machine answers. */
export interface GuardOptions {
  /** Names, beside `localhost` and addresses, that the server may be called by. */
  readonly allowedHosts: readonly string[];
  /** Origins, such as `https://app.example`, whose pages may use the server. */
  readonly allowedOrigins: readonly string[];
}

/**
 * Keeps foreign pages out. A page whose name was made to lead to this machine (DNS rebinding) is known by its Host, since
 * an address cannot be rebound; any other by its Origin.
 * @returns The origin that the answer is for, if it is for a page.
 * @throws HttpError 400, 403
 */
export function guard(request: IncomingMessage, options: GuardOptions): string | undefined {
  const { host, origin } = request.headers;
  if (!isAllowedHost(hostName(host), options.allowedHosts)) {
    const remedy = 'start the server with --allow-host to let it be called so';
    throw new HttpError(403, `The host ${describe(host)} is not allowed; ${remedy}.`);
  }
  if (origin !== undefined && !options.allowedOrigins.includes(origin)) {
    const remedy = 'start the server with --cors to let it use this server';
    throw new HttpError(403, `The origin ${describe(origin)} is not allowed; ${remedy}.`);
  }
  return origin;
}

/** @throws HttpError 400 */
function hostName(host: string | undefined): string {
  try {
    // IPv6 addresses are in brackets there.
    return new URL(`http://${host}`).hostname.replace(/^\[|\]$/g, '');
  } catch {
    throw new HttpError(400, `The Host header is ${describe(host)}, which is no host.`);
  }
}

function isAllowedHost(name: string, allowed: readonly string[]): boolean {
  return isIP(name) > 0 || name === 'localhost' || allowed.includes(name);
}
