/**
 * GPT-2 writes the bytes of its tokens as letters, so that a vocabulary is readable text without blanks or
 * control characters (Radford et al. 2019): the printable bytes of Latin-1 stand for themselves, the other
 * 68 for the letters from U+0100 on, in order. A space is "Ġ" and a line feed "Ċ".
 */

function isPrintable(byte: number): boolean {
  return (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte <= 0xff && byte !== 0xad);
}

function makeLetterCodes(): Uint16Array {
  const codes = new Uint16Array(256);
  let substitute = 0x100;
  for (let byte = 0; byte < 256; byte++) codes[byte] = isPrintable(byte) ? byte : substitute++;
  return codes;
}

const letterCodes = /* @__PURE__ */ makeLetterCodes();
const byteOfCode = /* @__PURE__ */ new Map(Array.from(letterCodes, (code, byte) => [code, byte]));

/** The letter that stands for a byte (0 to 255). */
export function letterOf(byte: number): string {
  return String.fromCharCode(letterCodes[byte]!);
}

/** The bytes that a token's letters stand for; undefined where a character is none of the 256 letters. */
export function bytesOfLetters(letters: string): Uint8Array | undefined {
  const bytes = new Uint8Array(letters.length);
  for (let i = 0; i < letters.length; i++) {
    const byte = byteOfCode.get(letters.charCodeAt(i));
    if (byte === undefined) return undefined;
    bytes[i] = byte;
  }
  return bytes;
}
