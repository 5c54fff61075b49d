import { errorFor, InvalidArgumentError } from '../errors.js';
import { emptyPrompt } from '../prompt.js';
import type { PromptRequest } from '../protocol.js';
import type { LoadedModel } from './load.js';

/**
 * The ids of a prompt that fits into the context.
 * @param before Tokens of a session before it.
 * @param kept How many of them stay.
 * @throws InvalidArgumentError, GenerationError `context-full`
 */
export function encodePrompt(
  model: LoadedModel,
  { prompt, allowSpecial }: PromptRequest,
  before = 0,
  kept = before,
): Int32Array {
  const { tokenizer } = model;
  const { contextLength } = model.info;
  const { nPositions, vocabSize } = model.info.config;
  const ids = typeof prompt === 'string' ? tokenizer.encode(prompt, { allowSpecial }) : prompt;
  if (before + ids.length === 0) throw new InvalidArgumentError(emptyPrompt);
  const foreign = ids.find(id => id >= vocabSize);
  if (foreign !== undefined) {
    throw new InvalidArgumentError(
      `The prompt has the token ${foreign}, but the model's vocabulary ends at ${vocabSize - 1}.`,
    );
  }
  if (kept + ids.length > contextLength) {
    const room =
      contextLength < nPositions
        ? `the engine was loaded with a contextLength of ${contextLength} (the model has ${nPositions} positions)`
        : `the model has ${nPositions} positions`;
    const rest = kept > 0 ? ` after the session's ${kept}` : '';
    throw errorFor('context-full', `The prompt has ${ids.length} tokens${rest}, but ${room}.`);
  }
  return ids;
}
