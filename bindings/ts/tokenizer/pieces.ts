/**
 * Cuts text into the pieces that byte pair encoding never merges across. GPT-2 (Radford et al. 2019) states
 * the cut as a regular expression, in which \s is Unicode's White_Space:
 *
 *   's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
 *
 * It is written out as a scanner here because a regular expression engine may keep a place to come back to
 * for every character of a run: V8 throws "Maximum call stack size exceeded" on a piece of some megabytes.
 * Also, JavaScript's \s is not White_Space: it lacks U+0085 and has U+FEFF.
 */

type Kind = 1 | 2 | 3 | 4;
const LETTER: Kind = 1;
const NUMBER: Kind = 2;
const SPACE: Kind = 3;
const OTHER: Kind = 4;

const UNKNOWN = 0;
const APOSTROPHE = 0x27;
const BLANK = 0x20;

function lookUpKind(codePoint: number): Kind {
  const character = String.fromCodePoint(codePoint);
  if (/^\p{L}/u.test(character)) return LETTER;
  if (/^\p{N}/u.test(character)) return NUMBER;
  return /^\p{White_Space}/u.test(character) ? SPACE : OTHER;
}

// Filled as characters turn up: all 65,536 at once would cost tens of milliseconds at start-up.
const kinds = /* @__PURE__ */ new Uint8Array(0x10000);

function kindOf(codePoint: number): Kind {
  if (codePoint > 0xffff) return lookUpKind(codePoint);
  let kind = kinds[codePoint]!;
  if (kind === UNKNOWN) {
    kind = lookUpKind(codePoint);
    kinds[codePoint] = kind;
  }
  return kind as Kind;
}

/** Where the run of characters of one kind that covers `at` ends. */
function endOfRun(text: string, at: number, kind: Kind): number {
  while (at < text.length) {
    const codePoint = text.codePointAt(at)!;
    if (kindOf(codePoint) !== kind) break;
    at += codePoint > 0xffff ? 2 : 1;
  }
  return at;
}

/** The length of 's 't 'm 'd 're 've 'll at an apostrophe, or 0. Capitals do not count in GPT-2. */
function contractionLength(text: string, at: number): number {
  const first = text[at + 1];
  if (first === 's' || first === 't' || first === 'm' || first === 'd') return 2;
  const second = text[at + 2];
  if (second === 'e') return first === 'r' || first === 'v' ? 3 : 0;
  return first === 'l' && second === 'l' ? 3 : 0;
}

/**
 * The end of the piece that starts at code unit `start` of `text`, which must be a character's first and
 * less than the text's length. Time grows with the piece's length only.
 */
export function endOfPiece(text: string, start: number): number {
  const first = text.charCodeAt(start);
  if (first === APOSTROPHE) {
    const length = contractionLength(text, start);
    if (length > 0) return start + length;
  }
  // One blank goes with the word, number or punctuation behind it.
  const body = first === BLANK && start + 1 < text.length ? start + 1 : start;
  const kind = kindOf(text.codePointAt(body)!);
  if (kind !== SPACE) return endOfRun(text, body, kind);

  const end = endOfRun(text, start, SPACE);
  // \s+(?!\S): in front of more text, the last space is left over for the next piece.
  return end < text.length && end - start > 1 ? end - 1 : end;
}
