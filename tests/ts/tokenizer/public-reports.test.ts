/** Inputs on which other tokenizers failed, by their public bug reports. */
import { describe, expect, test } from 'vitest';
import { Tokenizer } from '../../../bindings/ts/tokenizer/tokenizer.js';
import { gpt2 } from './gpt2.js';
import { haveGpt2, loadGpt2, needsGpt2 } from './gpt2-vocab.js';
import { mergesTxt } from './small-vocab.js';

interface Report {
  title: string;
  text: string;
  ids: number[];
}

const roundTrips: Report[] = [
  {
    title: 'B01 keeps emoji',
    text: 'hello 👋 world 🌍',
    ids: [31373, 50169, 233, 995, 12520, 234, 235],
  },
  {
    title: 'B02 encodes curly quotes',
    text: '“wrote jack a letter”',
    ids: [447, 250, 42910, 14509, 257, 3850, 447, 251],
  },
  { title: "B03 splits 'll and 'd off", text: "he'll'd", ids: [258, 1183, 1549] },
  { title: "B03 splits 'll off a capital", text: "I'll", ids: [40, 1183] },
  {
    title: 'B04 takes a double newline at the end as one',
    text: 'This is good.\n\n',
    ids: [1212, 318, 922, 13, 628],
  },
  {
    title: 'B04 takes a double newline before text as two',
    text: 'This is good.\n\nBut in a way.',
    ids: [1212, 318, 922, 13, 198, 198, 1537, 287, 257, 835, 13],
  },
  { title: 'B05 leaves the last blank to the word', text: 'a  b', ids: [64, 220, 275] },
  {
    title: 'B05 encodes indented code',
    text: 'def f():\n    return  x',
    ids: [4299, 277, 33529, 198, 220, 220, 220, 1441, 220, 2124],
  },
  { title: 'B07 keeps the blank before punctuation', text: ' ?', ids: [5633] },
  { title: 'B07 keeps the blank before a full stop', text: ' .', ids: [764] },
  {
    title: 'B09 takes a fraction for a number',
    text: 'ied 4 ½ months',
    ids: [798, 604, 25208, 1933],
  },
  { title: 'B16 keeps NUL', text: 'x\u0000y', ids: [87, 188, 88] },
  { title: 'B19 keeps a carriage return', text: '\r\n', ids: [201, 198] },
  // Told apart by White_Space: to JavaScript's \s, U+0085 is no space and U+FEFF is one.
  { title: 'U+0085 is white space', text: ' \u0085a', ids: [220, 126, 227, 64] },
  { title: 'U+FEFF is none, and is kept', text: ' \ufeffa', ids: [27332, 119, 123, 64] },
];

describe.skipIf(!haveGpt2)(`public reports, with GPT-2's vocabulary${needsGpt2}`, () => {
  test.each(roundTrips)('$title', ({ text, ids }) => {
    expect([...gpt2().encode(text)]).toEqual(ids);
    expect(gpt2().decode(ids)).toBe(text);
  });

  test('B08 encodes a lone surrogate as U+FFFD', () => {
    expect([...gpt2().encode('\ud83d')]).toEqual([4210]);
    expect([...gpt2().encode('a\ud83db')]).toEqual([64, 4210, 65]);
    expect(gpt2().decode([64, 4210, 65])).toBe('a\ufffdb');
  });

  // A quadratic merge would run into the test's time limit at the second length.
  test.each([100_000, 200_000])('B13 encodes %i times "a", one piece', length => {
    const ids = gpt2().encode('a'.repeat(length));
    expect(ids.length).toBe(length / 4);
    expect(ids.every(id => id === 24794)).toBe(true);
  });

  test('B13 encodes a million letters, one piece, and gives them back', () => {
    const letters = Array.from(
      { length: 1e6 },
      (_, i) => 'etaoinshrdlu'[(i * i * 31 + i * 7) % 12],
    );
    const text = letters.join('');
    expect(gpt2().decode(gpt2().encode(text)) === text).toBe(true);
  });

  test('B15 takes a control token in the text as plain text', () => {
    expect([...gpt2().encode('a<|endoftext|>b')]).toEqual([
      64, 27, 91, 437, 1659, 5239, 91, 29, 65,
    ]);
  });

  test('B15 reads a control token in the text on request', () => {
    const ids = [64, 50256, 65];
    expect([...gpt2().encode('a<|endoftext|>b', { allowSpecial: true })]).toEqual(ids);
    expect(gpt2().decode(ids)).toBe('a<|endoftext|>b');
    expect(gpt2().decode(ids, { skipSpecial: true })).toBe('ab');
  });

  test('B19 reads merges.txt with CRLF line ends', () => {
    const { vocab, merges } = loadGpt2();
    const crlf = mergesTxt(merges).replaceAll('\n', '\r\n');
    const tokenizer = Tokenizer.fromVocabAndMerges(JSON.stringify(vocab), crlf);
    const text = 'Once upon a time,\r\nthere was a merges file.';
    expect(tokenizer.encode(text)).toEqual(gpt2().encode(text));
    expect([...tokenizer.encode('\r\n')]).toEqual([201, 198]);
  });

  test('B20 decodes ids that encoding would not have chosen', () => {
    expect(gpt2().decode([4616, 9886])).toBe(' comparisons');
    expect([...gpt2().encode(' comparisons')]).toEqual([17909]);
  });

  test('B74 knows how many rows of the logits have a token', () => {
    expect(gpt2().vocabSize).toBe(50257);
    expect(gpt2().endOfText).toBe(50256);
    expect(() => gpt2().decode([50257])).toThrow(/50257 is not in the vocabulary/);
  });
});
