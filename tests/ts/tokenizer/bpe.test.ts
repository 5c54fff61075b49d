import fc from 'fast-check';
import { expect, test } from 'vitest';
import { Tokenizer } from '../../../bindings/ts/tokenizer/tokenizer.js';
import { mergesTxt, type SmallVocab, smallVocab } from './small-vocab.js';

/** The definition, taken at its word: look at every pair, merge the lowest rank's leftmost, start over. */
function naiveMerge(piece: string, merges: [string, string][]): string[] {
  const ranks = new Map(merges.map(([left, right], rank) => [`${left} ${right}`, rank]));
  const symbols = [...piece];
  for (;;) {
    let best = -1;
    let bestRank = Infinity;
    for (let i = 0; i + 1 < symbols.length; i++) {
      const rank = ranks.get(`${symbols[i]} ${symbols[i + 1]}`) ?? Infinity;
      if (rank < bestRank) {
        best = i;
        bestRank = rank;
      }
    }
    if (best < 0) return symbols;
    symbols.splice(best, 2, symbols[best]! + symbols[best + 1]!);
  }
}

/** Merges of a, b and c and of what they make, in an order in which a part may come after the whole. */
const vocabularies: fc.Arbitrary<SmallVocab> = fc
  .array(fc.tuple(fc.nat(), fc.nat()), { maxLength: 40 })
  .map(picks => {
    const tokens = ['a', 'b', 'c'];
    return picks.map(([i, j]): [string, string] => {
      const merge: [string, string] = [tokens[i % tokens.length]!, tokens[j % tokens.length]!];
      if (merge.join('').length < 12) tokens.push(merge.join(''));
      return merge;
    });
  })
  .chain(merges => fc.shuffledSubarray(merges, { minLength: merges.length }))
  .map(merges => {
    const distinct = new Map(merges.map(merge => [merge.join(' '), merge]));
    return smallVocab([...distinct.values()]);
  });

function expectSameAsNaive({ vocab, merges }: SmallVocab, text: string): void {
  const tokenizer = Tokenizer.fromVocabAndMerges(JSON.stringify(vocab), mergesTxt(merges));
  const expected = naiveMerge(text, merges).map(token => vocab[token]);
  expect([...tokenizer.encode(text)]).toEqual(expected);
  // Once more, for what the cache of pieces answers.
  expect([...tokenizer.encode(text)]).toEqual(expected);
}

const abc = fc.constantFrom('a', 'b', 'c');

test('merging is the naive definition, on any merges and pieces', () => {
  fc.assert(fc.property(vocabularies, fc.string({ unit: abc, maxLength: 80 }), expectSameAsNaive), {
    numRuns: 300,
  });
});

test('merging is the naive definition on pieces longer than the shared buffers', () => {
  const long = fc.string({ unit: abc, minLength: 1020, maxLength: 1500 });
  fc.assert(fc.property(vocabularies, long, expectSameAsNaive), { numRuns: 10 });
});

test('of equal ranks the leftmost pair is merged first', () => {
  expectSameAsNaive(smallVocab([['a', 'a']]), 'aaaaa');
});

test('of two merges of the same pair the later counts', () => {
  const { vocab } = smallVocab([
    ['a', 'b'],
    ['b', 'c'],
  ]);
  const merges = mergesTxt(['a b', 'b c', 'a b']);
  const tokenizer = Tokenizer.fromVocabAndMerges(JSON.stringify(vocab), merges);
  expect([...tokenizer.encode('abc')]).toEqual([vocab.a, vocab.bc]);
});
