/**
 * OpenAI's completions, chat completions and embeddings, answered by an engine in this process: the same requests, responses
 * and errors, without a server.
 * @module
 */

import { type ChatTemplate, plainChatTemplate } from '../chat-template.js';
import { describe } from '../describe.js';
import { InvalidArgumentError } from '../errors.js';
import type { EmbeddingEngine } from '../text-engine.js';
import { chat, readChat, streamChat } from './chat.js';
import { complete, readCompletion, streamCompletion } from './completions.js';
import { embed } from './embeddings.js';
import type { Server } from './response.js';
import type {
  ChatCompletion,
  ChatCompletionChunk,
  ChatCompletionParams,
  Completion,
  CompletionChunk,
  CompletionParams,
  EmbeddingParams,
  EmbeddingResponse,
  ModelList,
} from './types.js';

export {
  type ChatPrompt,
  type ChatTemplate,
  type ChatTurn,
  plainChatTemplate,
} from '../chat-template.js';
export type { EmbeddingEngine, TextEngine } from '../text-engine.js';
export {
  type ErrorBody,
  type ErrorResponse,
  errorResponse,
  OpenAIRequestError,
  type RefusalCode,
} from './errors.js';
export { toEventStream } from './event-stream.js';
export type * from './types.js';

/** How an engine is to answer. */
export interface OpenAIOptions {
  /** The model's name in requests and responses. Default `kvasm`. */
  model?: string;
  /** How a conversation becomes a text. Default: `plainChatTemplate`. */
  chatTemplate?: ChatTemplate;
}

/** What a call takes beside its request. */
export interface CallOptions {
  /** Ends what was asked for; the call then rejects with the signal's reason. */
  signal?: AbortSignal;
}

/** Answers requests of one kind. */
export interface Endpoint<Params, Response, Chunk> {
  /**
   * Chunks as they come; leaving the loop ends the generations.
   * @throws OpenAIRequestError for a request that cannot be answered, and from the loop what `Engine.generate` throws.
   */
  create(
    params: Params & { readonly stream: true },
    options?: CallOptions,
  ): Promise<AsyncIterable<Chunk>>;
  /**
   * The whole answer.
   * @throws OpenAIRequestError for a request that cannot be answered; what `Engine.generate` throws.
   */
  create(
    params: Params & { readonly stream?: false | null },
    options?: CallOptions,
  ): Promise<Response>;
  /** Either of the two. */
  create(params: Params, options?: CallOptions): Promise<Response | AsyncIterable<Chunk>>;
}

/** Answers requests for embeddings. */
export interface EmbeddingEndpoint {
  /**
   * The means of the final hidden states, as `Engine.embed` gives them. With `encoding_format: 'base64'` as texts.
   * @throws OpenAIRequestError for a request that cannot be answered; what `Engine.embed` throws.
   */
  create(
    params: EmbeddingParams & { readonly encoding_format: 'base64' },
    options?: CallOptions,
  ): Promise<EmbeddingResponse<string>>;
  /** As arrays of numbers. */
  create(
    params: EmbeddingParams & { readonly encoding_format?: 'float' | null },
    options?: CallOptions,
  ): Promise<EmbeddingResponse>;
  /** Either of the two. */
  create(
    params: EmbeddingParams,
    options?: CallOptions,
  ): Promise<EmbeddingResponse<number[] | string>>;
}

/** The part of OpenAI's client that an engine can stand in for. */
export interface OpenAICompatible {
  /** Continues texts. */
  readonly completions: Endpoint<CompletionParams, Completion, CompletionChunk>;
  /** Continues conversations. */
  readonly chat: {
    /** Says what the assistant says next. */
    readonly completions: Endpoint<ChatCompletionParams, ChatCompletion, ChatCompletionChunk>;
  };
  /** Makes vectors of texts. */
  readonly embeddings: EmbeddingEndpoint;
  /** Tells of the engine's model. */
  readonly models: {
    /** All there are: one. */
    list(): Promise<ModelList>;
  };
}

/**
 * An engine behind the methods of OpenAI's client. Parameters that kvasm cannot follow are refused with an
 * OpenAIRequestError, but for those that have no effect on the answer.
 * @throws InvalidArgumentError for options that are none.
 */
export function createOpenAI(
  engine: EmbeddingEngine,
  options: OpenAIOptions = {},
): OpenAICompatible {
  const { model = 'kvasm', chatTemplate = plainChatTemplate, ...rest } = options;
  const unknown = Object.keys(rest)[0];
  if (unknown !== undefined) {
    throw new InvalidArgumentError(`createOpenAI has no option ${describe(unknown)}.`);
  }
  if (typeof model !== 'string' || model === '') {
    throw new InvalidArgumentError(`model must be a name, not ${describe(model)}.`);
  }
  const server: Server = { engine, model };
  const created = Math.floor(Date.now() / 1000);
  return {
    completions: endpoint(
      params => readCompletion(params, server),
      complete,
      streamCompletion,
      server,
    ),
    chat: {
      completions: endpoint(
        params => readChat(params, server, chatTemplate),
        chat,
        streamChat,
        server,
      ),
    },
    embeddings: {
      create: (params: EmbeddingParams, { signal }: CallOptions = {}) =>
        embed(params, server, signal),
    } as EmbeddingEndpoint,
    models: {
      async list() {
        return {
          object: 'list',
          data: [{ id: model, object: 'model', created, owned_by: 'kvasm' }],
        };
      },
    },
  };
}

function endpoint<Params, Request extends { readonly stream: boolean }, Response, Chunk>(
  read: (params: Params) => Request,
  answer: (request: Request, server: Server, signal: AbortSignal | undefined) => Promise<Response>,
  stream: (
    request: Request,
    server: Server,
    signal: AbortSignal | undefined,
  ) => AsyncIterable<Chunk>,
  server: Server,
): Endpoint<Params, Response, Chunk> {
  async function create(params: Params, { signal }: CallOptions = {}) {
    const request = read(params);
    return request.stream ? stream(request, server, signal) : answer(request, server, signal);
  }
  // TypeScript does not tell the overloads apart by what is in a parameter.
  return { create } as Endpoint<Params, Response, Chunk>;
}
