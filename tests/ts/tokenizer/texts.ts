import fc from 'fast-check';

/** Any JavaScript string: characters of all planes, words and blanks, and code units with lone surrogates. */
export const anyText: fc.Arbitrary<string> = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 60 }),
  fc.string({ unit: 'grapheme', maxLength: 60 }),
  fc
    .array(fc.integer({ min: 0, max: 0xffff }), { maxLength: 40 })
    .map(units => String.fromCharCode(...units)),
  fc
    .array(
      fc.constantFrom(
        ...["'", "'s", "'ll", "'LL", 'a', 'Z', 'é', '漢', '𠀀', '7', '½', '²', '!', '😊', '\u0301'],
        ...[' ', '  ', '\n', '\r\n', '\t', '\u0085', '\u00a0', '\u2028', '\u3000'],
        ...['\ufeff', '\u200b', '\u001c', '\0', '\ud83d', '\ude0a'],
      ),
      { maxLength: 30 },
    )
    .map(parts => parts.join('')),
);

/** The text as UTF-8 keeps it: lone surrogates become U+FFFD. */
export function wellFormed(text: string): string {
  return new TextDecoder('utf-8', { ignoreBOM: true }).decode(new TextEncoder().encode(text));
}
