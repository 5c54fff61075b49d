// Prompts that every engine reads as the same ids, whether it takes ids or text.

import { makeVocabulary } from '../../scripts/fixtures/make-checkpoint.mjs';

// Coprime to any number of words, so that no id comes twice before all have.
const STEP = 7919;

/**
 * Prompts of whole words of the made-up vocabulary: their text encodes to the same ids again.
 * @param {number} vocabSize
 * @returns {{ prompt: (count: number, seed: number) => { ids: number[], prompt: string }, decode: (ids: number[]) => string }}
 *   prompts of different seeds begin with different ids
 */
export function promptMaker(vocabSize) {
  const { tokens } = makeVocabulary(vocabSize);
  const words = tokens.flatMap((token, id) => (/^Ġ[a-z]+$/.test(token) ? [id] : []));
  const decode = ids => ids.map(id => tokens[id].replace('Ġ', ' ')).join('');
  return {
    decode,
    prompt(count, seed) {
      const ids = Array.from({ length: count }, (_, i) => words[(seed + i * STEP) % words.length]);
      return { ids, prompt: decode(ids) };
    },
  };
}
