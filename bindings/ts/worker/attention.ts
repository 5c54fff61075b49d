import { errorFor } from '../errors.js';
import type { AttentionAnswer, AttentionRequest } from '../protocol.js';
import { checkStatus, type LoadedModel } from './load.js';

/**
 * @throws GenerationError `context-full` for more tokens than the model has positions, `out-of-memory`;
 *   InvalidArgumentError
 */
export function attentionWeights(
  { engine, tokenizer, info }: LoadedModel,
  { prompt, allowSpecial, layer, head }: AttentionRequest,
): AttentionAnswer {
  const tokens = typeof prompt === 'string' ? tokenizer.encode(prompt, { allowSpecial }) : prompt;
  if (tokens.length > info.contextLength) {
    throw errorFor(
      'context-full',
      `There are ${tokens.length} tokens, but the context has ${info.contextLength}.`,
    );
  }
  const attention = engine.attention(tokens, layer, head ?? -1);
  try {
    checkStatus(attention.status());
    return {
      tokens: Int32Array.from(tokens),
      texts: Array.from(tokens, token => tokenizer.decode([token])),
      weights: Float32Array.from(attention.weights()),
    };
  } finally {
    attention.delete();
  }
}
