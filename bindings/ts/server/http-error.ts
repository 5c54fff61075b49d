import { type ErrorBody, errorResponse } from '../openai/errors.js';

/** A request that fails without the engine. */
export class HttpError extends Error {
  override readonly name = 'HttpError';
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;

  constructor(status: number, message: string, headers: Readonly<Record<string, string>> = {}) {
    super(message);
    this.status = status;
    this.headers = headers;
  }
}

/** An error as a response, in OpenAI's shape. */
export function toResponse(error: unknown): {
  status: number;
  body: ErrorBody;
  headers: Readonly<Record<string, string>>;
} {
  if (!(error instanceof HttpError)) return { ...errorResponse(error), headers: {} };
  const { status, message, headers } = error;
  const type = status < 500 ? 'invalid_request_error' : 'server_error';
  const body = { message, type, param: null, code: null } as const;
  return { status, body: { error: body }, headers };
}
