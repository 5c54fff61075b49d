/**
 * Files of tokenizers, damaged at random: each gives a tokenizer or a ModelError, soon. KVASM_FUZZ_RUNS sets how many are
 * tried of each kind (default 300).
 */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';

import { KvasmError, ModelError } from '../../../bindings/ts/errors.js';
import type { GgufTokenizer } from '../../../bindings/ts/tokenizer/gguf-tokenizer.js';
import { Tokenizer } from '../../../bindings/ts/tokenizer/tokenizer.js';
import { mergesTxt, smallVocab, tokenizerJson } from './small-vocab.js';

const numRuns = Number(process.env.KVASM_FUZZ_RUNS ?? 300);
const timeout = 20_000 + numRuns * 20;

const small = smallVocab([
  ['a', 'b'],
  ['ab', 'c'],
  ['Ġ', 'ab'],
]);
const json = tokenizerJson(small, {
  added_tokens: [
    { id: 259, content: '<|endoftext|>', special: true, lstrip: false },
    { id: 260, content: '<tool>', special: false },
  ],
});
const text = 'abc ab <tool>\n<|endoftext|> 東京';

/** What it gives is a tokenizer that works, or it throws a ModelError that says why. */
function check(make: () => Tokenizer): void {
  let tokenizer: Tokenizer;
  try {
    tokenizer = make();
  } catch (error) {
    expect(error).toBeInstanceOf(ModelError);
    expect((error as ModelError).message).not.toBe('');
    expect(['invalid-tokenizer', 'unsupported']).toContain((error as ModelError).code);
    return;
  }
  for (const allowSpecial of [false, true]) {
    const ids = tokenizer.encode(text, { allowSpecial });
    for (const id of ids) expect(id < tokenizer.vocabSize).toBe(true);
    try {
      tokenizer.decode(ids);
    } catch (error) {
      // Nothing else may come out of it.
      expect(error).toBeInstanceOf(KvasmError);
    }
  }
}

/** Cuts, repeats, drops and replaces pieces of a text. */
const damaged = (whole: string): fc.Arbitrary<string> =>
  fc
    .array(
      fc.record({
        at: fc.nat(whole.length),
        drop: fc.oneof(fc.nat(4), fc.nat(whole.length)),
        insert: fc.oneof(
          fc.constantFrom('', '"', '{', '}', '[', ']', ',', ':', '\\', '\0', '-1', '1e999', 'null'),
          fc.string({ unit: 'binary', maxLength: 5 }),
          fc.record({ from: fc.nat(whole.length), length: fc.nat(40) }),
        ),
      }),
      { minLength: 1, maxLength: 4 },
    )
    .map(changes =>
      changes.reduce((result, { at, drop, insert }) => {
        const piece =
          typeof insert === 'string'
            ? insert
            : whole.slice(insert.from, insert.from + insert.length);
        return result.slice(0, at) + piece + result.slice(at + drop);
      }, whole),
    );

/** Replaces what is at one path of a JSON value by another value. */
function replaceAt(value: unknown, path: readonly number[], other: unknown): unknown {
  if (path.length === 0 || typeof value !== 'object' || value === null) return other;
  const entries = Object.entries(value);
  if (entries.length === 0) return other;
  const [first = 0, ...rest] = path;
  const [key, old] = entries[first % entries.length]!;
  const replaced = replaceAt(old, rest, other);
  if (Array.isArray(value)) return value.with(Number(key), replaced);
  return { ...value, [key]: replaced };
}

const odd = fc.oneof(
  fc.constantFrom<unknown>(null, true, -1, 0.5, 2 ** 53, 1e300, '', 'a', [], {}, [[]], ['a', 'b']),
  fc.jsonValue({ maxDepth: 3 }),
);

describe('a damaged tokenizer', () => {
  test(
    'from tokenizer.json gives a tokenizer or a ModelError',
    () => {
      fc.assert(
        fc.property(damaged(json), changed => check(() => Tokenizer.fromTokenizerJson(changed))),
        { numRuns },
      );
    },
    timeout,
  );

  test(
    'from tokenizer.json with a value replaced gives a tokenizer or a ModelError',
    () => {
      const whole: unknown = JSON.parse(json);
      fc.assert(
        fc.property(fc.array(fc.nat(400), { maxLength: 4 }), odd, (path, other) =>
          check(() => Tokenizer.fromTokenizerJson(JSON.stringify(replaceAt(whole, path, other)))),
        ),
        { numRuns },
      );
    },
    timeout,
  );

  test(
    'from vocab.json and merges.txt gives a tokenizer or a ModelError',
    () => {
      const vocab = JSON.stringify(small.vocab);
      const merges = mergesTxt(small.merges);
      fc.assert(
        fc.property(
          fc.oneof(
            fc.tuple(damaged(vocab), fc.constant(merges)),
            fc.tuple(fc.constant(vocab), damaged(merges)),
          ),
          ([vocabText, mergesText]) =>
            check(() => Tokenizer.fromVocabAndMerges(vocabText, mergesText)),
        ),
        { numRuns },
      );
    },
    timeout,
  );

  test(
    'from metadata of GGUF gives a tokenizer or a ModelError',
    () => {
      const texts = fc
        .tuple(fc.uint8Array({ maxLength: 2000 }), fc.array(fc.nat(2000), { maxLength: 600 }))
        .map(([bytes, lengths]) => {
          let end = 0;
          const ends = lengths.map(length => {
            end = Math.min(bytes.length, end + (length % 8));
            return end;
          });
          return { bytes, ends: Uint32Array.from(ends) };
        });
      const tokens = Object.keys(small.vocab).sort((a, b) => small.vocab[a]! - small.vocab[b]!);
      const encoded = tokens.map(token => new TextEncoder().encode(token));
      let end = 0;
      const valid = {
        bytes: Uint8Array.from(encoded.flatMap(token => [...token])),
        ends: Uint32Array.from(encoded, token => {
          end += token.length;
          return end;
        }),
      };
      const source: fc.Arbitrary<GgufTokenizer> = fc.record({
        model: fc.constantFrom('gpt2', 'gpt2', 'llama', '', null),
        pre: fc.constantFrom('gpt-2', null, 'x'),
        tokens: fc.oneof(fc.constant(valid), texts, fc.constant(null)),
        merges: fc.oneof(texts, fc.constant(null)),
        tokenTypes: fc.oneof(
          fc.constant(null),
          fc
            .array(fc.integer({ min: -1, max: 7 }), { minLength: 259, maxLength: 259 })
            .map(types => Int32Array.from(types)),
        ),
      });
      fc.assert(
        fc.property(source, changed => check(() => Tokenizer.fromGguf(changed))),
        { numRuns },
      );
    },
    timeout,
  );
});
