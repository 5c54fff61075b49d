import { describe } from '../describe.js';
import type { Prompt } from '../types.js';
import { OpenAIRequestError } from './errors.js';
import { completionLogprobs } from './logprobs.js';
import { mapEvents } from './map-events.js';
import {
  type CommonRequest,
  readBoolean,
  readCommon,
  readInteger,
  readParams,
  readStop,
  refuse,
} from './request.js';
import { newResponse, type Server } from './response.js';
import { Runs, usageOf } from './runs.js';
import type { Completion, CompletionChunk, CompletionLogprobs, CompletionParams } from './types.js';

const parameters = ['prompt', 'max_tokens', 'echo', 'logprobs'] as const;

/** A checked request. */
export interface CompletionRequest extends CommonRequest {
  readonly prompts: readonly Prompt[];
}

/** @throws OpenAIRequestError */
export function readCompletion(params: CompletionParams, server: Server): CompletionRequest {
  const read = readParams(params, parameters, server.model);
  const logprobs = readInteger(read, 'logprobs', 0, 128);
  return {
    prompts: readPrompts(read.prompt, server),
    ...readCommon(read, {
      maxTokens: readInteger(read, 'max_tokens', 0, Number.MAX_SAFE_INTEGER) ?? 16,
      stop: readStop(read),
      echo: readBoolean(read, 'echo'),
      ...(logprobs !== undefined && { logprobs }),
    }),
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
  const results = await new Runs(server.engine, prompts, options, signal).results();
  return {
    ...response,
    object: 'text_completion',
    choices: results
      .flatMap(({ choices }) => choices)
      .map(({ text, finishReason, chunks }, index) => ({
        index,
        text,
        logprobs: chunks ? completionLogprobs(chunks, 0) : null,
        finish_reason: finishReason,
      })),
    usage: usageOf(results),
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
  const lengths: number[] = [];
  const results = yield* mapEvents(runs.events(), event => {
    const { index } = event;
    const choice = (text: string, logprobs: CompletionLogprobs | null = null) => ({
      ...{ index, text, logprobs },
      finish_reason: 'choice' in event ? event.choice.finishReason : null,
    });
    if ('choice' in event) return [{ ...head, choices: [choice(event.tail)], ...noUsage }];
    const { text } = event.chunk;
    const start = lengths[index] ?? 0;
    lengths[index] = start + text.length;
    const logprobs =
      options.logprobs === undefined ? null : completionLogprobs([event.chunk], start);
    if (text === '' && !logprobs) return [];
    return [{ ...head, choices: [choice(text, logprobs)], ...noUsage }];
  });
  if (includeUsage) yield { ...head, choices: [], usage: usageOf(results) };
}
