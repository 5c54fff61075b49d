import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { endOfPiece } from '../../../bindings/ts/tokenizer/pieces.js';
import { anyText } from './texts.js';

function piecesOf(text: string): string[] {
  const pieces: string[] = [];
  for (let start = 0; start < text.length; start += pieces.at(-1)!.length) {
    pieces.push(text.slice(start, endOfPiece(text, start)));
  }
  return pieces;
}

/** GPT-2's own statement of the rule, with \s as White_Space. */
const published =
  /'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\p{White_Space}\p{L}\p{N}]+|\p{White_Space}+(?!\P{White_Space})|\p{White_Space}+/gu;

describe('the cut into pieces', () => {
  test.each([
    ['words keep the blank before them', 'to be, or', ['to', ' be', ',', ' or']],
    [
      'contractions',
      "they're I'm it's don't we've he'd she'll",
      [
        ...['they', "'re", ' I', "'m", ' it', "'s", ' don', "'t"],
        ...[' we', "'ve", ' he', "'d", ' she', "'ll"],
      ],
    ],
    ['capital contractions are none', "I'M", ['I', "'", 'M']],
    ['an apostrophe behind a blank starts none', " 's", [" '", 's']],
    ['an apostrophe at the end', "dogs'", ['dogs', "'"]],
    ['half a contraction', "a'l a'r", ['a', "'", 'l', ' a', "'", 'r']],
    ['letters and numbers part', 'mp3 2x ½²', ['mp', '3', ' 2', 'x', ' ½²']],
    ['a run of blanks before a word', 'a   b', ['a', '  ', ' b']],
    ['a run of newlines before a word', 'a\n\n\nb', ['a', '\n\n', '\n', 'b']],
    ['a run of blanks at the end', 'a   ', ['a', '   ']],
    ['only a blank', ' ', [' ']],
    ['characters beyond the first plane', '𠀀𠀁 😊😊', ['𠀀𠀁', ' 😊😊']],
    ['nothing', '', []],
  ])('%s', (_title, text, pieces) => {
    expect(piecesOf(text)).toEqual(pieces);
  });

  test('is the published regular expression, on any text', () => {
    fc.assert(
      fc.property(anyText, text => {
        expect(piecesOf(text)).toEqual(text.match(published) ?? []);
      }),
      { numRuns: 1000 },
    );
  });

  test('takes a piece that overflows the stack of a regular expression', () => {
    const text = '中'.repeat(10_000_000);
    expect(endOfPiece(text, 0)).toBe(text.length);
  });
});
