import { type ChatTemplate, type ChatTurn, StartTrimmer } from '../chat-template.js';
import { describe } from '../describe.js';
import type { Prompt } from '../types.js';
import { OpenAIRequestError } from './errors.js';
import { mapEvents } from './map-events.js';
import {
  type CommonRequest,
  isObject,
  readCommon,
  readInteger,
  readParams,
  readStop,
  refuse,
} from './request.js';
import { newResponse, type Server } from './response.js';
import { Runs } from './runs.js';
import type {
  ChatChunkChoice,
  ChatCompletion,
  ChatCompletionChunk,
  ChatCompletionParams,
} from './types.js';

const parameters = ['messages', 'max_completion_tokens', 'max_tokens'] as const;
const roles = ['system', 'developer', 'user', 'assistant'];

/** A checked request. */
export interface ChatRequest extends CommonRequest {
  readonly prompt: Prompt;
  /** Whether the assistant's last message is continued, so that white space counts from the start. */
  readonly continues: boolean;
}

/** @throws OpenAIRequestError, and what the template throws */
export function readChat(
  params: ChatCompletionParams,
  server: Server,
  template: ChatTemplate,
): ChatRequest {
  const read = readParams(params, parameters, server.model);
  const turns = readMessages(read.messages);
  const { prompt, stop } = template(turns);
  const maxTokens =
    readInteger(read, 'max_completion_tokens', 0, Number.MAX_SAFE_INTEGER) ??
    readInteger(read, 'max_tokens', 0, Number.MAX_SAFE_INTEGER);
  const limits = { maxTokens, stop: [...stop, ...readStop(read)] };
  return {
    prompt,
    continues: turns.at(-1)?.role === 'assistant',
    ...readCommon(read, limits),
  };
}

function readMessages(messages: unknown): ChatTurn[] {
  if (!Array.isArray(messages)) refuse('messages', messages, 'an array');
  if (messages.length === 0)
    throw new OpenAIRequestError('messages is an empty array.', 'messages');
  return messages.map((message, index) => readMessage(message, `messages[${index}]`));
}

function readMessage(message: unknown, label: string): ChatTurn {
  if (!isObject(message)) refuse(label, message, 'an object');
  const { role, content, name, ...rest } = message;
  if (typeof role !== 'string' || !roles.includes(role)) {
    refuse(`${label}.role`, role, `one of ${roles.join(', ')}`);
  }
  if (name !== undefined && typeof name !== 'string') refuse(`${label}.name`, name, 'a string');
  // Clients send a response's message back as it was, with what it does not have.
  const unknown = Object.entries(rest).find(([, value]) => value != null && !isEmpty(value));
  if (unknown) {
    const [key] = unknown;
    const text = `${label} has ${describe(key)}, which kvasm does not know.`;
    throw new OpenAIRequestError(text, `${label}.${key}`, 'unsupported_parameter');
  }
  return {
    role: role as ChatTurn['role'],
    content: readContent(content, `${label}.content`),
    ...(name === undefined ? {} : { name }),
  };
}

function isEmpty(value: unknown): boolean {
  return Array.isArray(value) && value.length === 0;
}

function readContent(content: unknown, label: string): string {
  if (typeof content === 'string') return content;
  if (!Array.isArray(content)) refuse(label, content, 'a string or an array of parts');
  return content
    .map((part, index) => {
      if (isObject(part) && part.type === 'text' && typeof part.text === 'string') return part.text;
      const type = isObject(part) ? describe(part.type) : describe(part);
      const text = `${label}[${index}] must be a part of the type "text" with a text, not ${type}.`;
      throw new OpenAIRequestError(text, label, 'unsupported_parameter');
    })
    .join('');
}

export async function chat(
  { prompt, options, continues }: ChatRequest,
  server: Server,
  signal: AbortSignal | undefined,
): Promise<ChatCompletion> {
  const response = newResponse('chatcmpl', server);
  const runs = new Runs(server.engine, [prompt], options, signal);
  const results = await runs.results();
  return {
    ...response,
    object: 'chat.completion',
    choices: results.map(({ text, finishReason }, index) => ({
      index,
      message: {
        role: 'assistant',
        content: new StartTrimmer(continues).push(text),
        refusal: null,
      },
      logprobs: null,
      finish_reason: finishReason,
    })),
    usage: runs.usage(results),
  };
}

export async function* streamChat(
  { prompt, options, continues, includeUsage }: ChatRequest,
  server: Server,
  signal: AbortSignal | undefined,
): AsyncGenerator<ChatCompletionChunk, void, undefined> {
  const response = newResponse('chatcmpl', server);
  const chunk = (choice: Omit<ChatChunkChoice, 'logprobs'>): ChatCompletionChunk => ({
    ...response,
    object: 'chat.completion.chunk',
    choices: [{ ...choice, logprobs: null }],
    ...(includeUsage ? { usage: null } : {}),
  });
  const trimmers = options.map(() => new StartTrimmer(continues));
  const runs = new Runs(server.engine, [prompt], options, signal);
  const introduced = new Set<number>();
  const results = yield* mapEvents(runs.events(), event => {
    const { index } = event;
    const chunks: ChatCompletionChunk[] = [];
    const say = (text: string) => {
      if (!introduced.has(index)) {
        introduced.add(index);
        chunks.push(
          chunk({ index, delta: { role: 'assistant', content: '' }, finish_reason: null }),
        );
      }
      const content = trimmers[index]?.push(text);
      if (content) chunks.push(chunk({ index, delta: { content }, finish_reason: null }));
    };
    if ('result' in event) {
      say(event.tail);
      chunks.push(chunk({ index, delta: {}, finish_reason: event.result.finishReason }));
    } else {
      say(event.text);
    }
    return chunks;
  });
  if (includeUsage) {
    const usage = runs.usage(results);
    yield { ...response, object: 'chat.completion.chunk', choices: [], usage };
  }
}
