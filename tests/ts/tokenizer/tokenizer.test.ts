import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { InvalidArgumentError } from '../../../bindings/ts/errors.js';
import { Tokenizer } from '../../../bindings/ts/tokenizer/tokenizer.js';
import { gpt2 } from './gpt2.js';
import { haveGpt2, loadGpt2, needsGpt2 } from './gpt2-vocab.js';
import { mergesTxt, smallVocab, tokenizerJson } from './small-vocab.js';
import { anyText, wellFormed } from './texts.js';

const small = smallVocab([
  ['h', 'e'],
  ['l', 'l'],
  ['he', 'll'],
  ['Ġ', 'hell'],
]);
const { vocab } = small;
const end = Object.keys(vocab).length;

function withAdded(...added: object[]): Tokenizer {
  return Tokenizer.fromTokenizerJson(tokenizerJson(small, { added_tokens: added }));
}

describe('the two kinds of files', () => {
  test('agree', () => {
    const fromJson = Tokenizer.fromTokenizerJson(tokenizerJson(small));
    const fromPair = Tokenizer.fromVocabAndMerges(JSON.stringify(vocab), mergesTxt(small.merges));
    fc.assert(
      fc.property(anyText, text => {
        expect(fromJson.encode(text)).toEqual(fromPair.encode(text));
      }),
    );
    expect([...fromJson.encode('hello hell')]).toEqual([vocab.hell, vocab.o, vocab.Ġhell]);
  });

  test('merges may be written as "left right" or as ["left", "right"]', () => {
    const merges = small.merges.map(merge => merge.join(' '));
    const tokenizer = Tokenizer.fromTokenizerJson(tokenizerJson({ vocab, merges }));
    expect([...tokenizer.encode(' hell')]).toEqual([vocab.Ġhell]);
  });

  test('a merge may start with "#", and with "#version" below the first line', () => {
    const sharp = smallVocab([
      ['#', '#'],
      ['#version', ':'],
    ]);
    sharp.vocab['#version'] = 1000;
    const merges = mergesTxt(sharp.merges);
    const whole = Tokenizer.fromVocabAndMerges(JSON.stringify(sharp.vocab), merges);
    expect([...whole.encode('##')]).toEqual([sharp.vocab['##']]);
    const headless = merges.slice(merges.indexOf('\n') + 1);
    const first = Tokenizer.fromVocabAndMerges(JSON.stringify(sharp.vocab), headless);
    expect([...first.encode('##')]).toEqual([sharp.vocab['##']]);
  });

  test('a byte order mark in front of a file does no harm', () => {
    const fromPair = Tokenizer.fromVocabAndMerges(
      `\ufeff${JSON.stringify(vocab)}`,
      `\ufeff${mergesTxt(small.merges)}`,
    );
    const fromJson = Tokenizer.fromTokenizerJson(`\ufeff${tokenizerJson(small)}`);
    expect([...fromPair.encode('hell'), ...fromJson.encode('hell')]).toEqual([
      vocab.hell,
      vocab.hell,
    ]);
  });

  test.skipIf(!haveGpt2)(`agree on GPT-2's vocabulary${needsGpt2}`, () => {
    const fromJson = Tokenizer.fromTokenizerJson(
      tokenizerJson(loadGpt2(), {
        added_tokens: [{ id: 50256, content: '<|endoftext|>', special: true, normalized: true }],
      }),
    );
    fc.assert(
      fc.property(anyText, fc.boolean(), (text, allowSpecial) => {
        const ids = fromJson.encode(text, { allowSpecial });
        expect(ids).toEqual(gpt2().encode(text, { allowSpecial }));
      }),
    );
    expect([fromJson.vocabSize, fromJson.endOfText]).toEqual([50257, 50256]);
  });
});

describe('encoding and decoding', () => {
  test('give any text back, with U+FFFD for lone surrogates', () => {
    const tokenizer = Tokenizer.fromTokenizerJson(tokenizerJson(small));
    fc.assert(
      fc.property(anyText, text => {
        expect(tokenizer.decode(tokenizer.encode(text))).toBe(wellFormed(text));
      }),
      { numRuns: 500 },
    );
  });

  test.skipIf(!haveGpt2)(`give any text back with GPT-2's vocabulary${needsGpt2}`, () => {
    fc.assert(
      fc.property(anyText, text => {
        expect(gpt2().decode(gpt2().encode(text))).toBe(wellFormed(text));
      }),
      { numRuns: 500 },
    );
  });

  test('go on being right when more different pieces come than the cache holds', () => {
    const tokenizer = Tokenizer.fromTokenizerJson(tokenizerJson(small));
    const text = Array.from({ length: 40_000 }, (_, i) => ` he${i.toString(26)}ll`).join('');
    expect(tokenizer.decode(tokenizer.encode(text)) === text).toBe(true);
    expect(tokenizer.encode(text)).toEqual(tokenizer.encode(text));
  });

  test('the empty text has no ids', () => {
    expect(withAdded().encode('')).toEqual(new Int32Array());
    expect(withAdded().decode([])).toBe('');
  });

  test('a text that is no string is refused', () => {
    const notText = 5 as unknown as string;
    expect(() => withAdded().encode(notText)).toThrow(InvalidArgumentError);
  });

  test.each([-1, end, 0.5, Number.NaN])('the id %d, of no token, is refused', id => {
    expect(() => withAdded().decode([0, id])).toThrow(InvalidArgumentError);
    expect(() => withAdded().tokenBytes(id)).toThrow(InvalidArgumentError);
  });

  test('an id in a gap of the vocabulary is refused', () => {
    const tokenizer = withAdded({ id: end + 2, content: '<pad>', special: true });
    expect(tokenizer.vocabSize).toBe(end + 3);
    expect(() => tokenizer.decode([end + 1])).toThrow(InvalidArgumentError);
  });

  test('the bytes of a token are a copy', () => {
    const tokenizer = withAdded();
    tokenizer.tokenBytes(vocab.Ġhell!).fill(0);
    expect([...tokenizer.tokenBytes(vocab.Ġhell!)]).toEqual([0x20, 0x68, 0x65, 0x6c, 0x6c]);
  });
});

describe('added tokens', () => {
  const user = { id: end, content: '<|user|>', special: true };
  const indent = { id: end + 1, content: '    ', special: false };

  test('control tokens are plain text unless they are asked for', () => {
    const tokenizer = withAdded(user);
    expect([...tokenizer.encode('<|user|>')]).not.toContain(user.id);
    expect([...tokenizer.encode('<|user|>hell', { allowSpecial: true })]).toEqual([
      end,
      vocab.hell,
    ]);
    expect([tokenizer.isSpecial(end), tokenizer.isSpecial(0)]).toEqual([true, false]);
    expect(tokenizer.decode([end, 0], { skipSpecial: true })).toBe(tokenizer.decode([0]));
  });

  test('tokens that are no control tokens are always found', () => {
    const tokenizer = withAdded(indent);
    expect([...tokenizer.encode('    hell')]).toEqual([indent.id, vocab.hell]);
    expect(tokenizer.decode([indent.id], { skipSpecial: true })).toBe('    ');
  });

  test('of two that start at the same place the longer one is found', () => {
    const tokenizer = withAdded(
      { id: end, content: '(*', special: true },
      { id: end + 1, content: '(*)', special: true },
    );
    const ids = tokenizer.encode('(*)(*', { allowSpecial: true });
    expect([...ids]).toEqual([end + 1, end]);
  });

  test('are written as they read, in any letters', () => {
    const tokenizer = withAdded({ id: end, content: '<é 😊>', special: true });
    expect(tokenizer.decode(tokenizer.encode('a<é 😊>', { allowSpecial: true }))).toBe('a<é 😊>');
    expect(new TextDecoder().decode(tokenizer.tokenBytes(end))).toBe('<é 😊>');
  });

  test('<|endoftext|> is a control token whatever the file says', () => {
    const tokenizer = withAdded({ id: end, content: '<|endoftext|>', special: false });
    expect(tokenizer.endOfText).toBe(end);
    expect([...tokenizer.encode('<|endoftext|>')]).not.toContain(end);
  });

  test('a vocabulary without <|endoftext|> has no such id', () => {
    expect(withAdded(user).endOfText).toBeUndefined();
  });
});
