import { type ChatTemplate, type ChatTurn, StartTrimmer } from '../chat-template.js';
import { describe } from '../describe.js';
import type { FinishReason, Prompt } from '../types.js';
import { OpenAIRequestError } from './errors.js';
import { chatLogprobs } from './logprobs.js';
import { mapEvents } from './map-events.js';
import {
  type CommonRequest,
  generationParameters,
  isObject,
  readBoolean,
  readCommon,
  readInteger,
  readParams,
  readStop,
  refuse,
} from './request.js';
import { newResponse, type Server } from './response.js';
import { Runs, usageOf } from './runs.js';
import type {
  AssistantDelta,
  ChatCompletion,
  ChatCompletionChunk,
  ChatCompletionParams,
  ChatLogprobs,
} from './types.js';

const parameters = [
  ...generationParameters,
  'messages',
  'max_completion_tokens',
  'max_tokens',
  'logprobs',
  'top_logprobs',
] as const;
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
  const topLogprobs = readInteger(read, 'top_logprobs', 0, 20);
  const logprobs = readBoolean(read, 'logprobs');
  if (topLogprobs !== undefined && !logprobs) {
    throw new OpenAIRequestError('top_logprobs needs logprobs: true.', 'top_logprobs');
  }
  const options = {
    ...(maxTokens !== undefined && { maxTokens }),
    ...(logprobs && { logprobs: topLogprobs ?? 0 }),
    stop: [...stop, ...readStop(read)],
  };
  return {
    prompt,
    continues: turns.at(-1)?.role === 'assistant',
    ...readCommon(read, options),
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
  const results = await new Runs(server.engine, [prompt], options, signal).results();
  return {
    ...response,
    object: 'chat.completion',
    choices: results
      .flatMap(({ choices }) => choices)
      .map(({ index, text, finishReason, chunks }) => ({
        index,
        message: {
          role: 'assistant',
          content: new StartTrimmer(continues).push(text),
          refusal: null,
        },
        logprobs: chunks ? chatLogprobs(chunks) : null,
        finish_reason: finishReason,
      })),
    usage: usageOf(results),
  };
}

export async function* streamChat(
  { prompt, options, continues, n, includeUsage }: ChatRequest,
  server: Server,
  signal: AbortSignal | undefined,
): AsyncGenerator<ChatCompletionChunk, void, undefined> {
  const head = { ...newResponse('chatcmpl', server), object: 'chat.completion.chunk' } as const;
  const noUsage = includeUsage ? { usage: null } : {};
  const chunk = (
    index: number,
    delta: AssistantDelta,
    logprobs: ChatLogprobs | null = null,
    finish_reason: FinishReason | null = null,
  ) => ({ ...head, choices: [{ index, delta, logprobs, finish_reason }], ...noUsage });
  const trimmers = Array.from({ length: n }, () => new StartTrimmer(continues));
  const runs = new Runs(server.engine, [prompt], options, signal);
  let begun = false;
  const results = yield* mapEvents(runs.events(), event => {
    const { index } = event;
    const isEnd = 'choice' in event;
    const content = trimmers[index]?.push(isEnd ? event.tail : event.chunk.text) ?? '';
    const logprobs = isEnd || options.logprobs === undefined ? null : chatLogprobs([event.chunk]);
    const chunks: ChatCompletionChunk[] = [];
    // Not before the first event, so that a run that fails at once has nothing said.
    for (let i = 0; i < n && !begun; i++) chunks.push(chunk(i, { role: 'assistant', content: '' }));
    begun = true;
    if (content !== '' || logprobs) chunks.push(chunk(index, { content }, logprobs));
    if (isEnd) chunks.push(chunk(index, {}, null, event.choice.finishReason));
    return chunks;
  });
  if (includeUsage) yield { ...head, choices: [], usage: usageOf(results) };
}
