import { InvalidArgumentError } from '../errors.js';
import { BytePairEncoder } from './bpe.js';
import { type GgufTokenizer, parseGgufTokenizer } from './gguf-tokenizer.js';
import { endOfPiece } from './pieces.js';
import { parseTokenizerJson, parseVocabAndMerges, type TokenizerFiles } from './tokenizer-files.js';
import { byteIds, mergesAsIds, Vocabulary } from './vocabulary.js';

export interface EncodeOptions {
  /**
   * Read control tokens such as <|endoftext|> written out in the text as that token. Default false: they are
   * plain text, so that text from a user cannot inject them.
   */
  allowSpecial?: boolean;
}

export interface DecodeOptions {
  /** Leave control tokens such as <|endoftext|> out. Default false: they come out as their text. */
  skipSpecial?: boolean;
}

// V8 copies a slice this short; a longer one would hold on to the whole text for as long as it is cached.
const CACHED_PIECE_LENGTH = 12;

// Some 2 MB. A book has fewer different words; what has more is unlikely to gain from a larger cache.
const CACHED_PIECES = 16_384;

/** A pattern that finds the longest of `contents` at each place; undefined when there are none. */
function patternFor(contents: readonly string[]): RegExp | undefined {
  if (contents.length === 0) return undefined;
  const longestFirst = [...contents].sort((a, b) => b.length - a.length);
  const escaped = longestFirst.map(content => content.replace(/[\\^$.*+?()[\]{}|/]/g, '\\$&'));
  return new RegExp(escaped.join('|'), 'gu');
}

/**
 * GPT-2's tokenizer: byte-level byte pair encoding (Radford et al. 2019, after Sennrich et al. 2016). Any
 * string has an encoding, and decoding it gives the string back, with U+FFFD for lone surrogates. Time grows
 * with the text's length, and with n log n for a piece without a break of n bytes.
 *
 * The other direction is no identity: ids may spell a text that encodes to other ids.
 */
export class Tokenizer {
  readonly #vocabulary: Vocabulary;
  readonly #encoder: BytePairEncoder;
  readonly #idOfAdded: ReadonlyMap<string, number>;
  readonly #anyAdded: RegExp | undefined;
  readonly #plainAdded: RegExp | undefined;
  readonly #cache = new Map<string, readonly number[]>();
  readonly #utf8 = new TextEncoder();

  private constructor(files: TokenizerFiles) {
    this.#vocabulary = new Vocabulary(files);
    this.#encoder = new BytePairEncoder(byteIds(files), mergesAsIds(files), this.#vocabulary.size);
    const { added } = this.#vocabulary;
    this.#idOfAdded = new Map(added.map(token => [token.content, token.id]));
    this.#anyAdded = patternFor(added.map(token => token.content));
    this.#plainAdded = patternFor(
      added.filter(token => !token.special).map(token => token.content),
    );
  }

  /**
   * Makes a tokenizer from the text of Hugging Face's `tokenizer.json`. Its `truncation` and `padding` are not
   * applied: `encode` gives the whole text's ids.
   *
   * Throws a ModelError: 'invalid-tokenizer' where the file is malformed or contradicts itself, 'unsupported'
   * where it asks for something that GPT-2's tokenizer does not do, such as another kind of model than
   * byte-level BPE, a normalizer, a prefix space, or tokens put around the text.
   */
  static fromTokenizerJson(json: string): Tokenizer {
    return new Tokenizer(parseTokenizerJson(json));
  }

  /**
   * Makes a tokenizer from the texts of GPT-2's `vocab.json` and `merges.txt`; lines may end in CRLF. The only
   * control token is <|endoftext|>, if the vocabulary has it.
   *
   * Throws a ModelError with the code 'invalid-tokenizer' where a file is malformed or the two do not match.
   */
  static fromVocabAndMerges(vocabJson: string, merges: string): Tokenizer {
    return new Tokenizer(parseVocabAndMerges(vocabJson, merges));
  }

  /**
   * Makes a tokenizer from the metadata of a GGUF file. It keeps nothing of what it is given.
   *
   * Throws a ModelError: 'invalid-tokenizer' where they are malformed or contradict themselves, 'unsupported' where they
   * describe another tokenizer than GPT-2's.
   */
  static fromGguf(source: GgufTokenizer): Tokenizer {
    return new Tokenizer(parseGgufTokenizer(source));
  }

  /** The highest id + 1: 50257 for GPT-2. A model may have more rows of logits, which are padding. */
  get vocabSize(): number {
    return this.#vocabulary.size;
  }

  /** The id of <|endoftext|>, 50256 for GPT-2; undefined where the vocabulary has no such token. */
  get endOfText(): number | undefined {
    return this.#vocabulary.endOfText;
  }

  /** The ids of a text; no tokens are put before or after it, and the empty text has none. */
  encode(text: string, { allowSpecial = false }: EncodeOptions = {}): Int32Array {
    if (typeof text !== 'string') {
      throw new InvalidArgumentError(`the text to encode must be a string, not ${typeof text}`);
    }
    const out: number[] = [];
    const pattern = allowSpecial ? this.#anyAdded : this.#plainAdded;
    let at = 0;
    if (pattern !== undefined) {
      for (const match of text.matchAll(pattern)) {
        this.#encodePieces(text.slice(at, match.index), out);
        out.push(this.#idOfAdded.get(match[0])!);
        at = match.index + match[0].length;
      }
    }
    this.#encodePieces(text.slice(at), out);
    return new Int32Array(out);
  }

  /**
   * The text that a whole sequence of ids spells. Bytes that are not UTF-8 become U+FFFD; spaces are never
   * tidied. For ids that arrive one by one use StreamDecoder, since a character may span several tokens.
   *
   * Throws an InvalidArgumentError for an id that is not in the vocabulary.
   */
  decode(ids: Iterable<number>, { skipSpecial = false }: DecodeOptions = {}): string {
    let bytes = new Uint8Array(256);
    let length = 0;
    for (const id of ids) {
      const token = this.#vocabulary.bytesOf(id);
      if (skipSpecial && this.#vocabulary.isSpecial(id)) continue;
      if (length + token.length > bytes.length) {
        const larger = new Uint8Array(2 * (length + token.length));
        larger.set(bytes);
        bytes = larger;
      }
      bytes.set(token, length);
      length += token.length;
    }
    return new TextDecoder('utf-8', { ignoreBOM: true }).decode(bytes.subarray(0, length));
  }

  /**
   * The bytes of a token, a copy; they need not be whole UTF-8 characters.
   *
   * Throws an InvalidArgumentError for an id that is not in the vocabulary.
   */
  tokenBytes(id: number): Uint8Array {
    return this.#vocabulary.bytesOf(id).slice();
  }

  /** Whether the id is a control token's, such as <|endoftext|>. */
  isSpecial(id: number): boolean {
    return this.#vocabulary.isSpecial(id);
  }

  #encodePieces(text: string, out: number[]): void {
    for (let start = 0; start < text.length; ) {
      const end = endOfPiece(text, start);
      const piece = text.slice(start, end);
      start = end;
      if (piece.length > CACHED_PIECE_LENGTH) {
        this.#encoder.encode(this.#utf8.encode(piece), out);
        continue;
      }
      let ids = this.#cache.get(piece);
      if (ids === undefined) {
        const fresh: number[] = [];
        this.#encoder.encode(this.#utf8.encode(piece), fresh);
        if (this.#cache.size >= CACHED_PIECES) this.#cache.clear();
        this.#cache.set(piece, fresh);
        ids = fresh;
      }
      for (const id of ids) out.push(id);
    }
  }
}
