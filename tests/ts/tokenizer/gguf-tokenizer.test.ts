import fc from 'fast-check';
import { describe, expect, it } from 'vitest';

import type { GgufTexts, GgufTokenizer } from '../../../bindings/ts/tokenizer/gguf-tokenizer.js';
import { Tokenizer } from '../../../bindings/ts/tokenizer/tokenizer.js';
import { gpt2 } from './gpt2.js';
import { haveGpt2, loadGpt2, needsGpt2 } from './gpt2-vocab.js';
import { mergesTxt, type SmallVocab, smallVocab } from './small-vocab.js';
import { anyText } from './texts.js';

const NORMAL = 1;
const CONTROL = 3;
const USER_DEFINED = 4;
const UNUSED = 5;

function pack(list: readonly string[]): GgufTexts {
  const parts = list.map(text => new TextEncoder().encode(text));
  let end = 0;
  const ends = Uint32Array.from(parts, part => {
    end += part.length;
    return end;
  });
  return { bytes: Uint8Array.from(parts.flatMap(part => [...part])), ends };
}

const small = smallVocab([
  ['a', 'b'],
  ['ab', 'c'],
  ['Ġ', 'ab'],
]);

/** The metadata of a small vocabulary with these tokens behind it. */
function metadata(
  more: { token: string; type: number }[] = [],
  change: Partial<GgufTokenizer> = {},
  { vocab, merges }: SmallVocab = small,
): GgufTokenizer {
  const tokens = Object.keys(vocab).sort((a, b) => vocab[a]! - vocab[b]!);
  return {
    model: 'gpt2',
    pre: 'gpt-2',
    tokens: pack([...tokens, ...more.map(({ token }) => token)]),
    merges: pack(merges.map(merge => merge.join(' '))),
    tokenTypes: Int32Array.from([...tokens.map(() => NORMAL), ...more.map(({ type }) => type)]),
    ...change,
  };
}

const thrown = (source: GgufTokenizer): unknown => {
  try {
    return Tokenizer.fromGguf(source);
  } catch (error) {
    return error;
  }
};

describe('a tokenizer from the metadata of a GGUF file', () => {
  it('encodes and decodes as that of vocab.json and merges.txt', () => {
    const other = Tokenizer.fromVocabAndMerges(
      JSON.stringify(small.vocab),
      mergesTxt(small.merges),
    );
    for (const change of [{}, { pre: null }, { tokenTypes: null }]) {
      const tokenizer = Tokenizer.fromGguf(metadata([], change));
      for (const text of ['abc ab', 'Ähm, 東京 👩‍👩‍👧', '']) {
        const ids = tokenizer.encode(text);
        expect([...ids]).toEqual([...other.encode(text)]);
        expect(tokenizer.decode(ids)).toBe(text);
      }
      expect(tokenizer.vocabSize).toBe(other.vocabSize);
    }
  });

  it('takes control tokens for special, and finds those that a user defined in any text (B15)', () => {
    const tokenizer = Tokenizer.fromGguf(
      metadata([
        { token: '<|endoftext|>', type: CONTROL },
        { token: '<tool>', type: USER_DEFINED },
      ]),
    );
    const [end, tool] = [259, 260];
    expect(tokenizer.endOfText).toBe(end);
    expect(tokenizer.isSpecial(end)).toBe(true);
    expect(tokenizer.isSpecial(tool)).toBe(false);
    expect([...tokenizer.encode('<tool>')]).toEqual([tool]);
    expect(tokenizer.encode('<|endoftext|>').length).toBeGreaterThan(5);
    expect([...tokenizer.encode('<|endoftext|>', { allowSpecial: true })]).toEqual([end]);
    expect(tokenizer.decode([tool, end])).toBe('<tool><|endoftext|>');
  });

  it('leaves out tokens that are rows of padding (B74)', () => {
    const tokenizer = Tokenizer.fromGguf(
      metadata([
        { token: '[PAD259]', type: UNUSED },
        { token: '[PAD259]', type: UNUSED },
      ]),
    );
    expect(tokenizer.vocabSize).toBe(259);
  });

  it.each<[string, Partial<GgufTokenizer>, RegExp, string?]>([
    ['no model', { model: null }, /tokenizer\.ggml\.model is missing/],
    ['another model', { model: 'llama' }, /"llama"/, 'unsupported'],
    ['another rule for words', { pre: 'llama-bpe' }, /"llama-bpe"/, 'unsupported'],
    ['no tokens', { tokens: null }, /tokens is missing/],
    ['no merges', { merges: null }, /merges is missing/],
    ['types that are too few', { tokenTypes: Int32Array.of(1) }, /259 tokens, but 1 /],
    ['a merge without a space', { merges: pack(['a b', 'ab']) }, /merges\[1\]: "ab"/],
    ['a merge of three', { merges: pack(['a b c']) }, /merges\[0\]/],
    ['a merge of unknown tokens', { merges: pack(['xy z']) }, /no "xy"/],
    ['no tokens for some bytes', { tokens: pack(['a', 'b']), tokenTypes: null }, /254 of the 256/],
    [
      'a token twice',
      { tokens: pack(['a', 'a']), tokenTypes: null },
      /tokens 0 and 1 are both "a"/,
    ],
    [
      'a token that is not UTF-8',
      { tokens: { bytes: Uint8Array.of(97, 255), ends: Uint32Array.of(1, 2) } },
      /tokens\[1\] is not UTF-8/,
    ],
  ])('refuses %s', (_, change, message, code = 'invalid-tokenizer') => {
    expect(thrown(metadata([], change))).toMatchObject({
      name: 'ModelError',
      code,
      message: expect.stringMatching(message),
    });
  });

  it('refuses an added token that is empty', () => {
    expect(thrown(metadata([{ token: '', type: CONTROL }]))).toMatchObject({
      code: 'invalid-tokenizer',
    });
  });
});

describe.skipIf(!haveGpt2)(`GPT-2's vocabulary from metadata${needsGpt2}`, () => {
  it('gives the ids that vocab.json and merges.txt give', () => {
    const { vocab, merges } = loadGpt2();
    const tokens = Object.keys(vocab).sort((a, b) => vocab[a]! - vocab[b]!);
    const tokenizer = Tokenizer.fromGguf({
      model: 'gpt2',
      pre: 'gpt-2',
      tokens: pack(tokens),
      merges: pack(merges),
      tokenTypes: Int32Array.from(tokens, (_, id) => (id === 50256 ? CONTROL : NORMAL)),
    });
    expect(tokenizer.vocabSize).toBe(50257);
    expect(tokenizer.endOfText).toBe(50256);
    fc.assert(
      fc.property(anyText, text => {
        expect(tokenizer.encode(text)).toEqual(gpt2().encode(text));
      }),
    );
  }, 60_000);
});
