import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { InvalidArgumentError } from '../../../bindings/ts/errors.js';
import { StreamDecoder } from '../../../bindings/ts/tokenizer/stream-decoder.js';
import { type DecodeOptions, Tokenizer } from '../../../bindings/ts/tokenizer/tokenizer.js';
import { gpt2 } from './gpt2.js';
import { haveGpt2, needsGpt2 } from './gpt2-vocab.js';
import { byteLetters, mergesTxt } from './small-vocab.js';
import { anyText } from './texts.js';

const END = 256;

/** Ids 0 to 255 are the bytes themselves, 256 is <|endoftext|>. */
const bytewise = Tokenizer.fromVocabAndMerges(
  JSON.stringify(
    Object.fromEntries([...byteLetters(), '<|endoftext|>'].map((token, id) => [token, id])),
  ),
  mergesTxt([]),
);

function chunksOf(tokenizer: Tokenizer, ids: Iterable<number>, options?: DecodeOptions): string[] {
  const decoder = new StreamDecoder(tokenizer, options);
  return [...Array.from(ids, id => decoder.push(id)), decoder.flush()];
}

/** Bytes that begin, continue and break characters turn up far more often than by chance. */
const byteIds = fc.array(
  fc.oneof(
    fc.constantFrom(0x41, 0x80, 0xbf, 0xc3, 0xe2, 0xef, 0xbb, 0xed, 0xa0, 0xf0, 0x9f, 0xf4, 0x90),
    fc.integer({ min: 0, max: END }),
  ),
  { maxLength: 40 },
);

describe('streaming ids into text', () => {
  test('joins to what decoding them all gives, on any bytes', () => {
    fc.assert(
      fc.property(byteIds, fc.boolean(), (ids, skipSpecial) => {
        const chunks = chunksOf(bytewise, ids, { skipSpecial });
        expect(chunks.join('')).toBe(bytewise.decode(ids, { skipSpecial }));
      }),
      { numRuns: 2000 },
    );
  });

  test('gives each character whole, as soon as its last byte is there', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary', maxLength: 20 }), text => {
        const chunks = chunksOf(bytewise, bytewise.encode(text));
        expect(chunks.filter(chunk => chunk !== '')).toEqual([...text]);
      }),
    );
  });

  test('a byte order mark survives, at the start and later', () => {
    expect(chunksOf(bytewise, bytewise.encode('\ufeffa\ufeff')).join('')).toBe('\ufeffa\ufeff');
    expect(bytewise.decode(bytewise.encode('\ufeffa\ufeff'))).toBe('\ufeffa\ufeff');
  });

  test('an incomplete character comes out of flush as U+FFFD', () => {
    expect(chunksOf(bytewise, [0x61, 0xf0, 0x9f, 0x98])).toEqual(['a', '', '', '', '\ufffd']);
  });

  test('an incomplete character in front of another one comes out with it', () => {
    expect(chunksOf(bytewise, [0xf0, 0x9f, 0x61])).toEqual(['', '', '\ufffda', '']);
  });

  test('is as new after flush', () => {
    const decoder = new StreamDecoder(bytewise);
    decoder.push(0xe4);
    decoder.flush();
    expect(decoder.push(0x61) + decoder.flush()).toBe('a');
  });

  test('an unknown id is refused and leaves the stream as it was', () => {
    const decoder = new StreamDecoder(bytewise);
    expect(decoder.push(0xc3)).toBe('');
    expect(() => decoder.push(300)).toThrow(InvalidArgumentError);
    expect(decoder.push(0xa9)).toBe('é');
  });
});

describe.skipIf(!haveGpt2)(`streaming GPT-2's ids into text${needsGpt2}`, () => {
  test('B22 a character in two tokens comes out whole', () => {
    expect(chunksOf(gpt2(), [47249, 232])).toEqual(['', '😊', '']);
  });

  test('B26 a character in two tokens comes out once', () => {
    const chunks = chunksOf(gpt2(), [32, 220, 10310, 244, 64, 65]);
    expect(chunks).toEqual(['A', ' ', '', '世', 'a', 'b', '']);
  });

  test('joins to what decoding them all gives, on any ids', () => {
    const ids = fc.array(fc.integer({ min: 0, max: 50256 }), { maxLength: 40 });
    fc.assert(
      fc.property(ids, list => {
        expect(chunksOf(gpt2(), list).join('')).toBe(gpt2().decode(list));
      }),
    );
  });

  test('joins to the text that was encoded', () => {
    fc.assert(
      fc.property(anyText, text => {
        const ids = gpt2().encode(text);
        expect(chunksOf(gpt2(), ids).join('')).toBe(gpt2().decode(ids));
      }),
    );
  });
});
