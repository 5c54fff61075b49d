import type { TextEngine } from '../text-engine.js';
import type { Prompt } from '../types.js';
import { completionLogprobs } from './logprobs.js';
import { mapEvents } from './map-events.js';
import {
  type CommonRequest,
  generationParameters,
  type Params,
  readBoolean,
  readCommon,
  readInteger,
  readParams,
  readPrompts,
  readStop,
} from './request.js';
import { newResponse, type Server } from './response.js';
import { Runs, usageOf } from './runs.js';
import type { Completion, CompletionChunk, CompletionLogprobs, CompletionParams } from './types.js';

const parameters = [...generationParameters, 'prompt', 'max_tokens', 'echo', 'logprobs'] as const;

/** A checked request. */
export interface CompletionRequest extends CommonRequest {
  readonly prompts: readonly Prompt[];
}

/** @throws OpenAIRequestError */
export function readCompletion(params: CompletionParams, server: Server): CompletionRequest {
  const read = readParams(params, parameters, server.model);
  const logprobs = readInteger(read, 'logprobs', 0, 128);
  return {
    prompts: promptsOf(read, server.engine.info),
    ...readCommon(read, {
      maxTokens: readInteger(read, 'max_tokens', 0, Number.MAX_SAFE_INTEGER) ?? 16,
      stop: readStop(read),
      echo: readBoolean(read, 'echo'),
      ...(logprobs !== undefined && { logprobs }),
    }),
  };
}

function promptsOf({ prompt }: Params, { endOfText }: TextEngine['info']): Prompt[] {
  if (prompt === undefined && endOfText !== undefined) return [[endOfText]];
  return readPrompts('prompt', prompt);
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
