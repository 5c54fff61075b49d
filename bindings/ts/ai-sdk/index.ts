/**
 * An engine as a language model of Vercel's AI SDK, version 7 (its interface version 4), for `generateText`, `streamText`
 * and whatever else takes a model.
 * @module
 */

import type {
  LanguageModelV4,
  LanguageModelV4CallOptions,
  LanguageModelV4FinishReason,
  LanguageModelV4StreamPart,
  LanguageModelV4Usage,
} from '@ai-sdk/provider';

import { type ChatTemplate, StartTrimmer } from '../chat-template.js';
import { describe } from '../describe.js';
import { InvalidArgumentError } from '../errors.js';
import type { TextEngine } from '../text-engine.js';
import type { GenerateChunk, GenerateResult, Generation } from '../types.js';
import { type ModelCall, readCall } from './call.js';

export {
  type ChatPrompt,
  type ChatTemplate,
  type ChatTurn,
  plainChatTemplate,
} from '../chat-template.js';
export type { TextEngine } from '../text-engine.js';

/** How an engine is to answer. */
export interface LanguageModelOptions {
  /** The model's name in telemetry and responses. Default `kvasm`. */
  modelId?: string;
  /**
   * How messages become a text. Default: a prompt, or one message of the user alone, is continued as it is; whatever has
   * more to it is written by `plainChatTemplate`.
   */
  chatTemplate?: ChatTemplate;
}

/**
 * A language model for the AI SDK. `providerOptions.kvasm` takes further options of `Engine.generate`. Tools, JSON as the
 * response format, and reasoning are answered by a warning, as the AI SDK has it; files in a prompt are refused.
 * @throws InvalidArgumentError for options that are none. Calls reject with what `Engine.generate` throws.
 */
export function createLanguageModel(
  engine: TextEngine,
  options: LanguageModelOptions = {},
): LanguageModelV4 {
  const { modelId = 'kvasm', chatTemplate, ...rest } = options;
  const unknown = Object.keys(rest)[0];
  if (unknown !== undefined) {
    throw new InvalidArgumentError(`createLanguageModel has no option ${describe(unknown)}.`);
  }
  const start = (call: ModelCall) => engine.generate(call.prompt, call.options);
  return {
    specificationVersion: 'v4',
    provider: 'kvasm',
    modelId,
    supportedUrls: {},
    async doGenerate(callOptions: LanguageModelV4CallOptions) {
      const call = readCall(callOptions, chatTemplate);
      const result = await start(call).result();
      const text = new StartTrimmer(call.keepsStart).push(result.text);
      return {
        content: [{ type: 'text', text }],
        finishReason: finishReasonOf(result),
        usage: usageOf(result),
        warnings: call.warnings,
        response: { timestamp: new Date(), modelId },
      };
    },
    async doStream(callOptions: LanguageModelV4CallOptions) {
      const call = readCall(callOptions, chatTemplate);
      const run = start(call);
      const chunks = run[Symbol.asyncIterator]();
      // What is wrong with the request rejects the call, and not the stream.
      const first = await chunks.next();
      const parts = streamParts(call, modelId, run, first, chunks);
      return { stream: toStream(parts) };
    },
  };
}

async function* streamParts(
  { warnings, keepsStart }: ModelCall,
  modelId: string,
  run: Generation,
  first: IteratorResult<GenerateChunk, undefined>,
  chunks: AsyncIterableIterator<GenerateChunk>,
): AsyncGenerator<LanguageModelV4StreamPart, void, undefined> {
  const id = '0';
  const trimmer = new StartTrimmer(keepsStart);
  try {
    yield { type: 'stream-start', warnings };
    yield { type: 'response-metadata', timestamp: new Date(), modelId };
    yield { type: 'text-start', id };
    let length = 0;
    for (let next = first; !next.done; next = await chunks.next()) {
      const { text } = next.value;
      length += text.length;
      const delta = trimmer.push(text);
      if (delta !== '') yield { type: 'text-delta', id, delta };
    }
    const result = await run.result();
    // The chunks lack what a stop token has cut off.
    const tail = trimmer.push(result.text.slice(length));
    if (tail !== '') yield { type: 'text-delta', id, delta: tail };
    yield { type: 'text-end', id };
    yield { type: 'finish', finishReason: finishReasonOf(result), usage: usageOf(result) };
  } finally {
    await chunks.return?.();
  }
}

function toStream<Part>(parts: AsyncGenerator<Part, void, undefined>): ReadableStream<Part> {
  return new ReadableStream({
    async pull(controller) {
      const next = await parts.next();
      if (next.done) controller.close();
      else controller.enqueue(next.value);
    },
    async cancel() {
      await parts.return();
    },
  });
}

function finishReasonOf({ finishReason }: GenerateResult): LanguageModelV4FinishReason {
  return { unified: finishReason, raw: finishReason };
}

function usageOf({ usage }: GenerateResult): LanguageModelV4Usage {
  const { prompt, cached, completion } = usage;
  return {
    inputTokens: {
      total: prompt,
      noCache: prompt - cached,
      cacheRead: cached,
      cacheWrite: undefined,
    },
    outputTokens: { total: completion, text: completion, reasoning: 0 },
  };
}
