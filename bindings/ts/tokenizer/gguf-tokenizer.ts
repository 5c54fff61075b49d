import { errorFor, type KvasmError } from '../errors.js';
import { type MergeRule, splitMerge, type TokenizerFiles } from './tokenizer-files.js';

/** Texts in UTF-8, end to end; `ends` says where in `bytes` each ends. */
export interface GgufTexts {
  readonly bytes: Uint8Array;
  readonly ends: Uint32Array;
}

/** What the metadata of a GGUF file say of the tokenizer, under `tokenizer.ggml`; null where they say nothing. */
export interface GgufTokenizer {
  readonly model: string | null;
  readonly pre: string | null;
  /** By id. */
  readonly tokens: GgufTexts | null;
  readonly merges: GgufTexts | null;
  /** By id. */
  readonly tokenTypes: Int32Array | null;
}

// llama_token_type of llama.cpp's llama.h.
const CONTROL = 3;
const USER_DEFINED = 4;
const UNUSED = 5;

const KEY = 'tokenizer.ggml';

function invalid(message: string, cause?: unknown): KvasmError {
  const options = cause === undefined ? undefined : { cause };
  return errorFor('invalid-tokenizer', `GGUF metadata: ${message}`, options);
}

function unsupported(message: string): KvasmError {
  return errorFor('unsupported', `GGUF metadata: ${message}`);
}

function shown(text: string): string {
  return JSON.stringify(text.length > 60 ? `${text.slice(0, 57)}...` : text);
}

function readTexts(texts: GgufTexts | null, key: string): string[] {
  if (texts === null) throw invalid(`${KEY}.${key} is missing, or no list of texts`);
  const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
  let start = 0;
  return Array.from(texts.ends, (end, index) => {
    const bytes = texts.bytes.subarray(start, end);
    start = end;
    try {
      return decoder.decode(bytes);
    } catch (cause) {
      throw invalid(`${KEY}.${key}[${index}] is not UTF-8`, cause);
    }
  });
}

function checkKind({ model, pre }: GgufTokenizer): void {
  if (model === null) {
    throw invalid(`${KEY}.model is missing; load the model with its tokenizer.json instead`);
  }
  if (model !== 'gpt2') {
    throw unsupported(`${KEY}.model is ${shown(model)}, and kvasm reads byte-level BPE, "gpt2"`);
  }
  // Files from before the key was introduced lack it.
  if (pre !== null && pre !== 'gpt-2') {
    throw unsupported(
      `${KEY}.pre is ${shown(pre)}, and kvasm cuts text by GPT-2's own rule, "gpt-2"`,
    );
  }
}

function readMerges(texts: GgufTexts | null): MergeRule[] {
  return readTexts(texts, 'merges').map((merge, place) => {
    const parts = splitMerge(merge);
    if (parts === undefined) {
      throw invalid(
        `${KEY}.merges[${place}]: ${shown(merge)} is not two tokens with one space between them`,
      );
    }
    return { left: parts[0], right: parts[1], place };
  });
}

/**
 * Reads the tokenizer that a GGUF file brings. Control tokens are special; tokens of the type "unused" are rows of
 * padding, and none at all. `add_bos_token` is not followed: nothing is ever added to a text.
 */
export function parseGgufTokenizer(source: GgufTokenizer): TokenizerFiles {
  checkKind(source);
  const { tokenTypes } = source;
  const tokens = readTexts(source.tokens, 'tokens');
  if (tokenTypes !== null && tokenTypes.length !== tokens.length) {
    throw invalid(
      `there are ${tokens.length} tokens, but ${tokenTypes.length} entries of ${KEY}.token_type`,
    );
  }
  const files: TokenizerFiles = {
    vocabName: `GGUF metadata ${KEY}.tokens`,
    vocab: new Map(),
    mergePlace: `GGUF metadata ${KEY}.merges entry`,
    merges: readMerges(source.merges),
    addedName: `GGUF metadata ${KEY}.tokens`,
    added: [],
  };
  for (const [id, content] of tokens.entries()) {
    const type = tokenTypes?.[id];
    if (type === UNUSED) continue;
    const other = files.vocab.get(content);
    if (other !== undefined) {
      throw invalid(`the tokens ${other} and ${id} are both ${shown(content)}`);
    }
    files.vocab.set(content, id);
    if (type === CONTROL || type === USER_DEFINED) {
      if (content === '') throw invalid(`${KEY}.tokens[${id}] is empty`);
      files.added.push({ id, content, special: type === CONTROL });
    }
  }
  return files;
}
