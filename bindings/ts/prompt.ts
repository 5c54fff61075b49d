import { describe } from './describe.js';
import { InvalidArgumentError } from './errors.js';

export const emptyPrompt =
  'The prompt is empty. To start from nothing, pass [engine.info.endOfText], the end-of-text id.';

/**
 * A text prompt as it is, ids as a new Int32Array, whatever array they came in.
 * @throws InvalidArgumentError for a prompt that is of another type, or empty although it may not be, or for an id that
 *   the model does not have.
 */
export function promptIds(
  prompt: unknown,
  vocabSize: number,
  mayBeEmpty: boolean,
): string | Int32Array {
  const length = promptLength(prompt);
  if (length === 0 && !mayBeEmpty) throw new InvalidArgumentError(emptyPrompt);
  if (typeof prompt === 'string') return prompt;
  const elements = prompt as ArrayLike<unknown>;
  // Grows with the ids that pass, so that an object with an absurd length fails at its first missing id.
  const ids: number[] = [];
  for (let i = 0; i < length; i++) ids.push(checkId(elements[i], i, vocabSize));
  return Int32Array.from(ids);
}

function promptLength(prompt: unknown): number {
  if (typeof prompt === 'string') return prompt.length;
  if (typeof prompt === 'object' && prompt !== null && 'length' in prompt) {
    const { length } = prompt;
    if (typeof length === 'number' && Number.isSafeInteger(length) && length >= 0) return length;
  }
  throw new InvalidArgumentError(
    `The prompt must be a string, or an array of token ids, not ${describe(prompt)}.`,
  );
}

function checkId(element: unknown, index: number, vocabSize: number): number {
  const id = typeof element === 'bigint' ? Number(element) : element;
  if (typeof id === 'number' && Number.isInteger(id) && id >= 0 && id < vocabSize) return id;
  throw new InvalidArgumentError(
    `prompt[${index}] must be a token id from 0 to ${vocabSize - 1}, not ${describe(element)}.`,
  );
}
