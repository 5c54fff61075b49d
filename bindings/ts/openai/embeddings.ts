import { InvalidArgumentError } from '../errors.js';
import type { Prompt } from '../types.js';
import { OpenAIRequestError } from './errors.js';
import { readInteger, readParams, readPrompts, refuse } from './request.js';
import type { Server } from './response.js';
import type { EmbeddingParams, EmbeddingResponse } from './types.js';

const parameters = ['input', 'encoding_format', 'dimensions'] as const;

/** A checked request. */
interface EmbeddingRequest {
  readonly inputs: readonly Prompt[];
  readonly base64: boolean;
}

/** @throws OpenAIRequestError */
function readEmbedding(params: EmbeddingParams, { engine, model }: Server): EmbeddingRequest {
  const read = readParams(params, parameters, model);
  const { encoding_format: format = 'float' } = read;
  if (format !== 'float' && format !== 'base64') {
    refuse('encoding_format', format, '"float" or "base64"');
  }
  const { nEmbd } = engine.info.config;
  const dimensions = readInteger(read, 'dimensions', 1, Number.MAX_SAFE_INTEGER) ?? nEmbd;
  if (dimensions !== nEmbd) {
    const message = `dimensions must be ${nEmbd}, which are the model's, not ${dimensions}.`;
    throw new OpenAIRequestError(message, 'dimensions', 'unsupported_parameter');
  }
  return { inputs: readPrompts('input', read.input), base64: format === 'base64' };
}

/**
 * The means of the final hidden states, computed in one batch. They end together: when one fails, or the signal aborts.
 * @throws OpenAIRequestError, what `Engine.embed` throws
 */
export async function embed(
  params: EmbeddingParams,
  server: Server,
  signal: AbortSignal | undefined,
): Promise<EmbeddingResponse<number[] | string>> {
  const { inputs, base64 } = readEmbedding(params, server);
  const { engine, model } = server;
  const controller = new AbortController();
  const abort = () => controller.abort(signal?.reason);
  if (signal?.aborted) abort();
  signal?.addEventListener('abort', abort);
  try {
    const results = await Promise.all(
      inputs.map(async input => {
        const ids = typeof input === 'string' ? await engine.tokenizer.encode(input) : input;
        const vector = await engine.embed(ids, { signal: controller.signal });
        return { tokens: ids.length, vector };
      }),
    );
    const tokens = results.reduce((sum, result) => sum + result.tokens, 0);
    return {
      object: 'list',
      data: results.map(({ vector }, index) => ({
        object: 'embedding',
        index,
        embedding: base64 ? toBase64(vector) : Array.from(vector),
      })),
      model,
      usage: { prompt_tokens: tokens, total_tokens: tokens },
    };
  } catch (error) {
    if (!(error instanceof InvalidArgumentError)) throw error;
    const message = error.message.replace(/^prompt\b/, 'input');
    throw new OpenAIRequestError(message, 'input', 'invalid_value', { cause: error });
  } finally {
    signal?.removeEventListener('abort', abort);
    controller.abort();
  }
}

/** The floats' bytes, little-endian as WebAssembly has them. */
function toBase64({ buffer, byteOffset, byteLength }: Float32Array): string {
  const bytes = new Uint8Array(buffer, byteOffset, byteLength);
  return btoa(Array.from(bytes, byte => String.fromCharCode(byte)).join(''));
}
