import { errorFor, type KvasmError } from '../errors.js';

/** A token that is found in the text before the text is cut and merged. */
export interface AddedToken {
  id: number;
  content: string;
  /** A control token, which stands for itself in text only on request. */
  special: boolean;
}

/** A line of the merges, and where it stands for error messages. */
export interface MergeRule {
  left: string;
  right: string;
  place: number;
}

/** What the tokenizer's files say, with the syntax gone. */
export interface TokenizerFiles {
  /** The file that the vocabulary is from, for error messages. */
  vocabName: string;
  /** Token in byte letters -> id. */
  vocab: Map<string, number>;
  /** What a merge's `place` counts, for error messages. */
  mergePlace: string;
  merges: MergeRule[];
  /** Where `added` is from, for error messages. */
  addedName: string;
  added: AddedToken[];
}

function invalid(message: string, cause?: unknown): KvasmError {
  return errorFor('invalid-tokenizer', message, cause === undefined ? undefined : { cause });
}

function unsupported(message: string): KvasmError {
  return errorFor('unsupported', `tokenizer.json: ${message}`);
}

type JsonObject = Record<string, unknown>;

function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function shown(value: unknown): string {
  const text = JSON.stringify(value) ?? String(value);
  return text.length > 60 ? `${text.slice(0, 57)}...` : text;
}

/** Some editors put a byte order mark in front of a file. */
function withoutBom(text: string): string {
  return text.startsWith('\ufeff') ? text.slice(1) : text;
}

function parseObject(json: string, name: string): JsonObject {
  let value: unknown;
  try {
    value = JSON.parse(withoutBom(json));
  } catch (error) {
    throw invalid(`${name} is not valid JSON; it may be cut off: download it again`, error);
  }
  if (!isObject(value)) throw invalid(`${name} holds ${shown(value)} where a JSON object belongs`);
  return value;
}

function readVocab(value: JsonObject, name: string): Map<string, number> {
  const vocab = new Map<string, number>();
  for (const [token, id] of Object.entries(value)) {
    if (typeof id !== 'number') {
      throw invalid(`${name}: token ${shown(token)} has the id ${shown(id)}, which is no number`);
    }
    vocab.set(token, id);
  }
  return vocab;
}

/** The two tokens of a line of merges; undefined where it is no such line. */
export function splitMerge(merge: string): [string, string] | undefined {
  const space = merge.indexOf(' ');
  if (space <= 0 || space === merge.length - 1) return undefined;
  return merge.includes(' ', space + 1)
    ? undefined
    : [merge.slice(0, space), merge.slice(space + 1)];
}

function readMergesTxt(text: string): MergeRule[] {
  const merges: MergeRule[] = [];
  for (const [index, ended] of withoutBom(text).split('\n').entries()) {
    const line = ended.endsWith('\r') ? ended.slice(0, -1) : ended;
    // Further down, a line that starts so is a merge.
    if (line === '' || (index === 0 && line.startsWith('#version'))) continue;
    const parts = splitMerge(line);
    if (parts === undefined) {
      throw invalid(
        `merges.txt line ${index + 1}: ${shown(line)} is not two tokens with one space between them`,
      );
    }
    merges.push({ left: parts[0], right: parts[1], place: index + 1 });
  }
  return merges;
}

function readMergeList(value: unknown): MergeRule[] {
  if (!Array.isArray(value)) {
    throw invalid(`tokenizer.json: model.merges is ${shown(value)} where a list belongs`);
  }
  return value.map((merge: unknown, place) => {
    const parts: unknown = typeof merge === 'string' ? splitMerge(merge) : merge;
    const [left, right]: unknown[] = Array.isArray(parts) && parts.length === 2 ? parts : [];
    if (typeof left !== 'string' || typeof right !== 'string' || !left || !right) {
      throw invalid(
        `tokenizer.json model.merges[${place}]: ${shown(merge)} is neither "left right" nor ["left", "right"]`,
      );
    }
    return { left, right, place };
  });
}

function readAddedToken(value: unknown, index: number): AddedToken {
  const where = `tokenizer.json added_tokens[${index}]`;
  if (!isObject(value)) throw invalid(`${where} is ${shown(value)} where an object belongs`);
  const { id, content, special = false } = value;
  if (typeof id !== 'number' || typeof content !== 'string' || content === '') {
    throw invalid(`${where} needs a number "id" and a text "content", but is ${shown(value)}`);
  }
  if (typeof special !== 'boolean') {
    throw invalid(`${where}: "special" is ${shown(special)}, neither true nor false`);
  }
  for (const flag of ['lstrip', 'rstrip', 'single_word']) {
    if (value[flag] === true) {
      throw unsupported(
        `added token ${shown(content)} has "${flag}": true, and kvasm matches added tokens only as they are written`,
      );
    }
  }
  return { id, content, special };
}

function readAddedTokens(value: unknown): AddedToken[] {
  if (value === undefined || value === null) return [];
  if (!Array.isArray(value)) {
    throw invalid(`tokenizer.json: added_tokens is ${shown(value)} where a list belongs`);
  }
  return value.map(readAddedToken);
}

/** GPT-2's tokenizer.json says type "BPE", or in older files nothing. */
function readModel(value: unknown): JsonObject {
  if (!isObject(value)) throw invalid(`tokenizer.json: model is ${shown(value)}, not an object`);
  if (value.type !== undefined && value.type !== 'BPE') {
    throw unsupported(
      `kvasm reads byte-level BPE, and this file's model.type is ${shown(value.type)}; use a GPT-2 checkpoint`,
    );
  }
  for (const option of [
    'dropout',
    'continuing_subword_prefix',
    'end_of_word_suffix',
    'ignore_merges',
  ]) {
    // null, '', 0 and false all say that the option is off.
    if (value[option]) {
      throw unsupported(
        `model.${option} is ${shown(value[option])}, which GPT-2's byte-level BPE does not have`,
      );
    }
  }
  return value;
}

function checkNormalizer(value: unknown): void {
  if (value === undefined || value === null) return;
  throw unsupported(
    `it has a normalizer (${shown(value)}), which would change the text; kvasm encodes text as it is`,
  );
}

function checkPreTokenizer(value: unknown): void {
  if (!isObject(value) || value.type !== 'ByteLevel' || value.use_regex === false) {
    throw unsupported(
      `kvasm cuts text by GPT-2's rule, a pre_tokenizer of type "ByteLevel" with use_regex on, but this file has ${shown(value)}`,
    );
  }
  if (value.add_prefix_space === true) {
    throw unsupported(
      'pre_tokenizer.add_prefix_space is true, but kvasm never adds to the text; set it to false and begin your text with a space',
    );
  }
}

/** A post-processor only matters to kvasm if it puts tokens around the text; GPT-2's does not. */
function checkPostProcessor(value: unknown): void {
  if (value === undefined || value === null) return;
  if (!isObject(value) || value.type !== 'ByteLevel') {
    throw unsupported(
      `post_processor ${shown(value)} may add tokens around the text, and GPT-2's ("ByteLevel" or null) adds none`,
    );
  }
}

/** Reads Hugging Face's tokenizer.json; refuses what would make other ids than kvasm's. */
export function parseTokenizerJson(json: string): TokenizerFiles {
  const file = parseObject(json, 'tokenizer.json');
  const model = readModel(file.model);
  checkNormalizer(file.normalizer);
  checkPreTokenizer(file.pre_tokenizer);
  checkPostProcessor(file.post_processor);
  if (!isObject(model.vocab)) {
    throw invalid(`tokenizer.json: model.vocab is ${shown(model.vocab)}, not an object`);
  }
  return {
    vocabName: 'tokenizer.json model.vocab',
    vocab: readVocab(model.vocab, 'tokenizer.json model.vocab'),
    mergePlace: 'tokenizer.json model.merges entry',
    merges: readMergeList(model.merges),
    addedName: 'tokenizer.json added_tokens',
    added: readAddedTokens(file.added_tokens),
  };
}

/** Reads the pair of files that GPT-2 was published with. */
export function parseVocabAndMerges(vocabJson: string, merges: string): TokenizerFiles {
  return {
    vocabName: 'vocab.json',
    vocab: readVocab(parseObject(vocabJson, 'vocab.json'), 'vocab.json'),
    mergePlace: 'merges.txt line',
    merges: readMergesTxt(merges),
    addedName: 'vocab.json',
    added: [],
  };
}
