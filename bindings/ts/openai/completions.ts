import { describe } from '../describe.js';
import type { Prompt } from '../types.js';
import { OpenAIRequestError } from './errors.js';
import { mapEvents } from './map-events.js';
import {
  type CommonRequest,
  readCommon,
  readInteger,
  readParams,
  readStop,
  refuse,
} from './request.js';
import { newResponse, type Server } from './response.js';
import { Runs } from './runs.js';
import type { Completion, CompletionChunk, CompletionParams } from './types.js';

const parameters = ['prompt', 'max_tokens'] as const;

/** A checked request. */
export interface CompletionRequest extends CommonRequest {
  readonly prompts: readonly Prompt[];
}

/** @throws OpenAIRequestError */
export function readCompletion(params: CompletionParams, server: Server): CompletionRequest {
  const read = readParams(params, parameters, server.model);
  const maxTokens = readInteger(read, 'max_tokens', 0, Number.MAX_SAFE_INTEGER) ?? 16;
  return {
    prompts: readPrompts(read.prompt, server),
    ...readCommon(read, { maxTokens, stop: readStop(read) }),
  };
}

function readPrompts(prompt: unknown, { engine }: Server): Prompt[] {
  const { endOfText } = engine.info;
  if (prompt === undefined && endOfText !== undefined) return [[endOfText]];
  if (typeof prompt === 'string') return [prompt];
  if (!Array.isArray(prompt)) refuse('prompt', prompt, 'a string or an array');
  if (prompt.length === 0) throw new OpenAIRequestError('prompt is an empty array.', 'prompt');
  if (prompt.every(element => typeof element === 'number')) return [prompt];
  for (const [index, element] of prompt.entries()) {
    if (typeof element === 'string' || Array.isArray(element)) continue;
    const message = `prompt[${index}] must be a string or an array of ids, not ${describe(element)}.`;
    throw new OpenAIRequestError(message, 'prompt');
  }
  return prompt;
}

export async function complete(
  { prompts, options }: CompletionRequest,
  server: Server,
  signal: AbortSignal | undefined,
): Promise<Completion> {
  const response = newResponse('cmpl', server);
  const runs = new Runs(server.engine, prompts, options, signal);
  const results = await runs.results();
  return {
    ...response,
    object: 'text_completion',
    choices: results.map(({ text, finishReason }, index) => ({
      index,
      text,
      logprobs: null,
      finish_reason: finishReason,
    })),
    usage: runs.usage(results),
  };
}

export async function* streamCompletion(
  { prompts, options, includeUsage }: CompletionRequest,
  server: Server,
  signal: AbortSignal | undefined,
): AsyncGenerator<CompletionChunk, void, undefined> {
  const head = { ...newResponse('cmpl', server), object: 'text_completion' } as const;
  const noUsage = includeUsage ? { usage: null } : {};
  const runs = new Runs(server.engine, prompts, options, signal);
  const results = yield* mapEvents(runs.events(), event => {
    const [text, reason] =
      'result' in event ? [event.tail, event.result.finishReason] : [event.text, null];
    const choice = { index: event.index, text, logprobs: null, finish_reason: reason };
    return [{ ...head, choices: [choice], ...noUsage }];
  });
  if (includeUsage) yield { ...head, choices: [], usage: runs.usage(results) };
}
