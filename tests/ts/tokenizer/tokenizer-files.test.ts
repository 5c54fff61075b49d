import { describe, expect, test } from 'vitest';
import { type KvasmErrorCode, ModelError } from '../../../bindings/ts/errors.js';
import { Tokenizer } from '../../../bindings/ts/tokenizer/tokenizer.js';
import { mergesTxt, smallVocab, tokenizerJson } from './small-vocab.js';

const small = smallVocab([['h', 'e']]);
const vocabJson = JSON.stringify(small.vocab);
const merges = mergesTxt(small.merges);

function expectRefusal(load: () => unknown, code: KvasmErrorCode, message: RegExp): void {
  let thrown: unknown;
  try {
    load();
  } catch (error) {
    thrown = error;
  }
  expect(thrown).toBeInstanceOf(ModelError);
  expect(thrown).toMatchObject({ code, message: expect.stringMatching(message) });
}

describe('a tokenizer.json of another kind is refused as unsupported', () => {
  const byteLevel = { type: 'ByteLevel', add_prefix_space: false };

  test.each([
    ['a Unigram model', {}, { type: 'Unigram' }, /byte-level BPE.*model\.type is "Unigram"/],
    ['a normalizer', { normalizer: { type: 'NFC' } }, {}, /normalizer.*NFC/],
    ['no pre-tokenizer', { pre_tokenizer: null }, {}, /pre_tokenizer.*null/],
    ['another pre-tokenizer', { pre_tokenizer: { type: 'Whitespace' } }, {}, /Whitespace/],
    ['another cut', { pre_tokenizer: { ...byteLevel, use_regex: false } }, {}, /use_regex/],
    [
      'a prefix space',
      { pre_tokenizer: { ...byteLevel, add_prefix_space: true } },
      {},
      /add_prefix_space is true/,
    ],
    [
      'tokens put around the text',
      { post_processor: { type: 'TemplateProcessing' } },
      {},
      /post_processor.*TemplateProcessing/,
    ],
    ['random merging', {}, { dropout: 0.1 }, /model\.dropout is 0\.1/],
    ['letters for the end of a word', {}, { end_of_word_suffix: '</w>' }, /end_of_word_suffix/],
    ['a prefix inside words', {}, { continuing_subword_prefix: '##' }, /continuing_subword_prefix/],
    ['whole words before merges', {}, { ignore_merges: true }, /ignore_merges/],
    [
      'an added token that takes blanks with it',
      { added_tokens: [{ id: 300, content: '<mask>', lstrip: true }] },
      {},
      /<mask>.*lstrip/,
    ],
  ])('%s', (_title, file, model, message) => {
    const json = tokenizerJson(small, file, model);
    expectRefusal(() => Tokenizer.fromTokenizerJson(json), 'unsupported', message);
  });
});

describe('a tokenizer.json as older and newer versions write it is read', () => {
  test.each([
    ['no model.type', {}, { type: undefined }],
    ['dropout 0', {}, { dropout: 0 }],
    ['null where "" was', {}, { continuing_subword_prefix: null, end_of_word_suffix: null }],
    ['no added tokens', { added_tokens: undefined }, {}],
    ['no post-processor', { post_processor: null }, {}],
    ['use_regex spelt out', { pre_tokenizer: { type: 'ByteLevel', use_regex: true } }, {}],
  ])('%s', (_title, file, model) => {
    const tokenizer = Tokenizer.fromTokenizerJson(tokenizerJson(small, file, model));
    expect([...tokenizer.encode('he')]).toEqual([small.vocab.he]);
  });
});

describe('a malformed tokenizer.json is refused', () => {
  test.each([
    [
      'a file that is cut off',
      tokenizerJson(small).slice(0, 1000),
      /tokenizer\.json is not valid JSON/,
    ],
    ['a list', '[]', /\[\] where a JSON object belongs/],
    ['no model', '{}', /model is undefined/],
    ['no vocabulary', tokenizerJson(small, {}, { vocab: null }), /model\.vocab is null/],
    ['no merges', tokenizerJson(small, {}, { merges: undefined }), /model\.merges is undefined/],
    ['a merge of one', tokenizerJson(small, {}, { merges: ['h e', 'he'] }), /merges\[1\]: "he"/],
    ['a merge of three', tokenizerJson(small, {}, { merges: [['h', 'e', 'l']] }), /merges\[0\]/],
    ['a merge of numbers', tokenizerJson(small, {}, { merges: [[1, 2]] }), /merges\[0\]/],
    [
      'an added token without an id',
      tokenizerJson(small, { added_tokens: [{ content: 'x' }] }),
      /added_tokens\[0\] needs a number "id"/,
    ],
    [
      'an added token without text',
      tokenizerJson(small, { added_tokens: [{ id: 300, content: '' }] }),
      /added_tokens\[0\] needs .* text "content"/,
    ],
    [
      'added tokens of another type',
      tokenizerJson(small, { added_tokens: {} }),
      /added_tokens is \{\}/,
    ],
    [
      'an added token that is neither special nor not',
      tokenizerJson(small, { added_tokens: [{ id: 300, content: 'x', special: 'no' }] }),
      /"special" is "no"/,
    ],
    [
      'an added token with two ids',
      tokenizerJson(small, { added_tokens: [{ id: 300, content: 'he' }] }),
      /"he" has the id 300 there and 256 elsewhere/,
    ],
    [
      "an added token with another token's id",
      tokenizerJson(small, { added_tokens: [{ id: 256, content: 'she' }] }),
      /"he" and "she" share the id 256/,
    ],
  ])('%s', (_title, json, message) => {
    expectRefusal(() => Tokenizer.fromTokenizerJson(json), 'invalid-tokenizer', message);
  });
});

describe('a malformed vocab.json or merges.txt is refused', () => {
  const without = (token: string) => {
    const { [token]: _gone, ...rest } = small.vocab;
    return JSON.stringify(rest);
  };

  test.each([
    ['a vocabulary that is an error page', '<html>', merges, /vocab\.json is not valid JSON/],
    [
      'an id that is text',
      JSON.stringify({ ...small.vocab, x: '1' }),
      merges,
      /"x" has the id "1"/,
    ],
    ['an id below 0', JSON.stringify({ ...small.vocab, x: -1 }), merges, /"x" has the id -1/],
    ['half an id', JSON.stringify({ ...small.vocab, x: 0.5 }), merges, /"x" has the id 0\.5/],
    [
      'an id out of reach',
      JSON.stringify({ ...small.vocab, x: 2 ** 31 }),
      merges,
      /has the id 2147483648/,
    ],
    [
      'two tokens of one id',
      JSON.stringify({ ...small.vocab, x2: 256 }),
      merges,
      /"he" and "x2" share the id 256/,
    ],
    ['an empty vocabulary', '{}', merges, /lacks 256 of the 256 byte letters/],
    ['a vocabulary without a blank', without('Ġ'), merges, /lacks 1 of .* "Ġ" for byte 32/],
    [
      'a merge whose result is no token',
      without('he'),
      merges,
      /line 2 merges "h" and "e", but vocab\.json has no "he"/,
    ],
    ['a merge of no token', vocabJson, mergesTxt(['h e', 'hex agon']), /line 3 .* has no "hex"/],
    ['a line of one token', vocabJson, mergesTxt(['h e', 'he']), /merges\.txt line 3: "he"/],
    ['a line of three tokens', vocabJson, mergesTxt(['h e l']), /merges\.txt line 2/],
    ['a line with a blank too many', vocabJson, mergesTxt(['h  e']), /merges\.txt line 2/],
    [
      '"#version" anywhere but at the top',
      vocabJson,
      `h e\n${merges}`,
      /line 2 merges "#version:"/,
    ],
  ])('%s', (_title, vocab, txt, message) => {
    const load = () => Tokenizer.fromVocabAndMerges(vocab, txt);
    expectRefusal(load, 'invalid-tokenizer', message);
  });
});
