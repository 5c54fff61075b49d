import { InvalidArgumentError, KvasmError, type KvasmErrorCode } from '../errors.js';

/** What OpenAI's API calls a refused request: the `code` of its error bodies. */
export type RefusalCode =
  | 'invalid_value'
  | 'unknown_parameter'
  | 'unsupported_parameter'
  | 'model_not_found';

/** A request that cannot be answered as it is. */
export class OpenAIRequestError extends InvalidArgumentError {
  /** The parameter that is at fault, or null when it is the request as a whole. */
  readonly param: string | null;
  /** Which kind of fault, in the terms of OpenAI's API. */
  readonly refusal: RefusalCode;

  /** @internal */
  constructor(
    message: string,
    param: string | null,
    refusal: RefusalCode = 'invalid_value',
    options?: ErrorOptions,
  ) {
    super(message, options);
    this.param = param;
    this.refusal = refusal;
  }
}

/** The JSON of an error, in the shape that OpenAI's clients read. */
export interface ErrorBody {
  /** What went wrong. */
  readonly error: {
    /** One sentence or more, for people. */
    readonly message: string;
    /** `invalid_request_error` when the request is at fault, else `server_error`. */
    readonly type: 'invalid_request_error' | 'server_error';
    /** The parameter at fault, where there is one. */
    readonly param: string | null;
    /** For programs: a code of OpenAI's where one fits, else a KvasmErrorCode. */
    readonly code: string | null;
  };
}

/** An error as a server answers it. */
export interface ErrorResponse {
  /** The HTTP status: 400 or 404 when the request is at fault, 503 when the engine cannot take it, else 500. */
  readonly status: number;
  /** The JSON to send. */
  readonly body: ErrorBody;
}

const statuses: Partial<Record<KvasmErrorCode, number>> = {
  'invalid-argument': 400,
  'context-full': 400,
  unsupported: 400,
  busy: 503,
  'out-of-memory': 503,
  disposed: 503,
  crashed: 503,
};

/** The HTTP status and body that stand for an error of `create`. What is no KvasmError keeps its message to itself. */
export function errorResponse(error: unknown): ErrorResponse {
  if (error instanceof OpenAIRequestError) {
    const { message, param, refusal: code } = error;
    const status = code === 'model_not_found' ? 404 : 400;
    return { status, body: { error: { message, type: 'invalid_request_error', param, code } } };
  }
  if (!(error instanceof KvasmError)) {
    const message = 'Something went wrong in the server.';
    const body = { message, type: 'server_error', param: null, code: null } as const;
    return { status: 500, body: { error: body } };
  }
  const status = statuses[error.code] ?? 500;
  const type = status === 400 ? 'invalid_request_error' : 'server_error';
  const code = error.code === 'context-full' ? 'context_length_exceeded' : error.code;
  return { status, body: { error: { message: error.message, type, param: null, code } } };
}
