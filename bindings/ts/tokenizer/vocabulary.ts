import { errorFor, InvalidArgumentError } from '../errors.js';
import type { Merge } from './bpe.js';
import { bytesOfLetters, letterOf } from './byte-letters.js';
import { RANK_LIMIT } from './pair-queue.js';
import type { AddedToken, TokenizerFiles } from './tokenizer-files.js';

/** Ids must be below this; far above any real vocabulary, and a table of so many ids still fits memory. */
const ID_LIMIT = 0x100_0000;

const END_OF_TEXT = '<|endoftext|>';
const UNUSED = -1;

function checkId(id: number, token: string, where: string): void {
  if (!Number.isInteger(id) || id < 0 || id >= ID_LIMIT) {
    throw errorFor(
      'invalid-tokenizer',
      `${where}: token ${JSON.stringify(token)} has the id ${id}; ids are whole numbers from 0 to ${ID_LIMIT - 1}`,
    );
  }
}

/** The added tokens, and <|endoftext|> among them even where a file does not list it as one. */
function collectAdded({
  vocab,
  vocabName,
  added,
  addedName,
}: TokenizerFiles): Map<string, AddedToken> {
  const tokens = new Map<string, AddedToken>();
  for (const token of added) {
    checkId(token.id, token.content, addedName);
    const listed = tokens.get(token.content)?.id ?? vocab.get(token.content) ?? token.id;
    if (listed !== token.id) {
      throw errorFor(
        'invalid-tokenizer',
        `${addedName}: ${JSON.stringify(token.content)} has the id ${token.id} there and ${listed} elsewhere in the file (${vocabName})`,
      );
    }
    tokens.set(token.content, token);
  }
  const id = tokens.get(END_OF_TEXT)?.id ?? vocab.get(END_OF_TEXT);
  // Whatever the file says of it: text that a user typed must not end a document.
  if (id !== undefined) tokens.set(END_OF_TEXT, { id, content: END_OF_TEXT, special: true });
  return tokens;
}

/** The tokens of a model: their ids, their bytes, and which of them are control tokens. */
export class Vocabulary {
  /** The highest id + 1. */
  readonly size: number;
  readonly endOfText: number | undefined;
  /** Tokens to look for in the text itself. */
  readonly added: readonly AddedToken[];
  readonly #specialIds: ReadonlySet<number>;
  // All tokens' bytes end to end: an array object for each of 50,257 would take ten times the memory.
  readonly #bytes: Uint8Array;
  readonly #starts: Int32Array;
  readonly #ends: Int32Array;

  constructor(files: TokenizerFiles) {
    const added = collectAdded(files);
    this.added = [...added.values()];
    this.endOfText = added.get(END_OF_TEXT)?.id;
    this.#specialIds = new Set(this.added.filter(token => token.special).map(token => token.id));

    const tokens = new Map<number, string>();
    const claim = (token: string, id: number): void => {
      const other = tokens.get(id);
      if (other !== undefined && other !== token) {
        throw errorFor(
          'invalid-tokenizer',
          `${files.vocabName}: tokens ${JSON.stringify(other)} and ${JSON.stringify(token)} share the id ${id}`,
        );
      }
      tokens.set(id, token);
    };
    let highest = -1;
    for (const [token, id] of files.vocab) {
      checkId(id, token, files.vocabName);
      claim(token, id);
      highest = Math.max(highest, id);
    }
    for (const { content, id } of this.added) {
      claim(content, id);
      highest = Math.max(highest, id);
    }

    this.size = highest + 1;
    this.#starts = new Int32Array(this.size).fill(UNUSED);
    this.#ends = new Int32Array(this.size).fill(UNUSED);
    const encoder = new TextEncoder();
    const parts: Uint8Array[] = [];
    let length = 0;
    for (const [id, token] of tokens) {
      // An added token is written as it reads, and so must be what is not in byte letters.
      const bytes = (added.has(token) ? undefined : bytesOfLetters(token)) ?? encoder.encode(token);
      this.#starts[id] = length;
      length += bytes.length;
      this.#ends[id] = length;
      parts.push(bytes);
    }
    this.#bytes = new Uint8Array(length);
    let at = 0;
    for (const part of parts) {
      this.#bytes.set(part, at);
      at += part.length;
    }
  }

  isSpecial(id: number): boolean {
    return this.#specialIds.has(id);
  }

  /** A view of the token's bytes, not to be written to. Throws InvalidArgumentError for an id of no token. */
  bytesOf(id: number): Uint8Array {
    const start = this.#starts[id] ?? UNUSED;
    if (start === UNUSED) {
      throw new InvalidArgumentError(
        `token id ${id} is not in the vocabulary, whose ids go from 0 to ${this.size - 1}`,
      );
    }
    return this.#bytes.subarray(start, this.#ends[id]!);
  }
}

/** The ids of the 256 single bytes, without which some text could not be encoded. */
export function byteIds({ vocab, vocabName }: TokenizerFiles): Int32Array {
  const letters = Array.from({ length: 256 }, (_, byte) => letterOf(byte));
  const missing = letters.filter(letter => !vocab.has(letter));
  if (missing.length > 0) {
    const byte = letters.indexOf(missing[0]!);
    throw errorFor(
      'invalid-tokenizer',
      `${vocabName} lacks ${missing.length} of the 256 byte letters, first ${JSON.stringify(missing[0])} for byte ${byte}, so some text could not be encoded; use a byte-level BPE vocabulary such as GPT-2's`,
    );
  }
  return Int32Array.from(letters, letter => vocab.get(letter)!);
}

/** The merges as ids, in order of rank. */
export function mergesAsIds({ vocab, vocabName, merges, mergePlace }: TokenizerFiles): Merge[] {
  if (merges.length > RANK_LIMIT) {
    throw errorFor(
      'invalid-tokenizer',
      `there are ${merges.length} merges, and kvasm reads ${RANK_LIMIT} at most`,
    );
  }
  return merges.map(({ left, right, place }) => {
    const idOf = (token: string): number => {
      const id = vocab.get(token);
      if (id !== undefined) return id;
      throw errorFor(
        'invalid-tokenizer',
        `${mergePlace} ${place} merges ${JSON.stringify(left)} and ${JSON.stringify(right)}, but ${vocabName} has no ${JSON.stringify(token)}; are the two of the same model?`,
      );
    };
    return { left: idOf(left), right: idOf(right), result: idOf(left + right) };
  });
}
