/**
 * The surface of the Emscripten module, as bindings/embind.cc registers it. Internal: the worker is its only user.
 * Objects live in WebAssembly memory and are freed by `delete()`.
 */

import type { GgufTokenizer } from './tokenizer/gguf-tokenizer.js';
import type { ModelConfig } from './types.js';

/** `code` is a KvasmErrorCode, or '' when all is well. */
export interface WasmStatus {
  readonly code: string;
  readonly message: string;
}

export interface WasmConfig extends ModelConfig {
  /** -1 when config.json names none. */
  readonly eosTokenId: number;
}

export const wasmWeightDtypes = { f32: 0, q8: 1, q4: 2 } as const;
export const wasmKvDtypes = { f32: 0, f16: 1, q8: 2 } as const;

export interface WasmEngineOptions {
  /** How the weights are stored: one of wasmWeightDtypes. */
  readonly dtype: number;
  /** Positions that a sequence may use; 0 means n_positions. */
  readonly contextLength: number;
  /** Keys that a query sees; 0 means all. */
  readonly window: number;
  /** One of wasmKvDtypes. */
  readonly kvDtype: number;
  /** Bytes for keys and values; 0 means what one sequence of full length needs. */
  readonly kvBytes: number;
  readonly prefixCache: boolean;
  /** Rows that one forward pass takes at the most; at least 1. */
  readonly prefillChunk: number;
}

/** All in bytes but for `kvTokens`. */
export interface WasmMemory {
  readonly weights: number;
  readonly activations: number;
  /** The pool, and what the textbook strategies hold beside it. */
  readonly kvReserved: number;
  /** `kvTokens * kvPerToken`. */
  readonly kvUsed: number;
  /** What sequences hold by sharing another's block. */
  readonly kvShared: number;
  /** Blocks that only the prefix tree holds. */
  readonly kvCached: number;
  readonly kvPerToken: number;
  /** Tokens that sequences hold now, each as often as a sequence holds it. */
  readonly kvTokens: number;
}

export interface WasmPrefixStats {
  readonly lookups: number;
  /** Lookups that reused at least one token. */
  readonly hits: number;
  readonly tokensReused: number;
  /** Blocks in the tree now. */
  readonly blocks: number;
  /** Blocks given up so far. */
  readonly evictions: number;
}

/**
 * Takes the weights' files as they arrive: fill the staging buffer, consume, repeat, finish. One file needs no more; the
 * shards of an index are announced by `setIndex`, and each begins with `nextFile`. The format is told by the first bytes.
 */
export interface WasmLoader {
  /** Why the constructor failed (a bad config), or ok. */
  status(): WasmStatus;
  /**
   * The text of model.safetensors.index.json, before any weights. It must list all that the model needs. A tensor that it
   * does not list is an error if the model would use it, and is skipped otherwise; in which shard a listed one is does
   * not matter.
   */
  setIndex(json: string): WasmStatus;
  /** The names of the files that lie beside the index, each once, sorted. Empty without an index. */
  shards(): string[];
  /** Ends the file before, if there was one, and begins the next. `name` is for messages. */
  nextFile(name: string): WasmStatus;
  /** Where in HEAPU8 the next bytes go. HEAPU8 must be read anew from the module each time: memory may have grown. */
  stagingAddress(): number;
  stagingSize(): number;
  /** Consumes the first `byteCount` bytes of the staging buffer. */
  consume(byteCount: number): WasmStatus;
  /**
   * The size that the header announces for the whole current file in bytes; 0 while the header is incomplete. A GGUF file
   * may lack some of its last 31 bytes, which are padding.
   */
  fileBytes(): number;
  /** Null until it is known: from the start, or, where a GGUF file brings it, after its header. */
  config(): WasmConfig | null;
  /**
   * Null until the header of a GGUF file is through. Its arrays are views into WebAssembly memory: read them before the
   * next call of anything.
   */
  ggufTokenizer(): GgufTokenizer | null;
  /** Checks that the last file was complete and that no tensor is missing, and builds the engine. */
  finish(): WasmStatus;
  /** The engine; once, after `finish` was ok. The loader may then be deleted. */
  takeEngine(): WasmEngine;
  delete(): void;
}

export const wasmCacheStrategies = { block: 0, concat: 1, none: 2 } as const;

/** What a sequence is computed for. */
export const wasmOutputs = {
  tokens: 0,
  lastLogits: 1,
  allLogits: 2,
  logProbabilities: 3,
  lastHidden: 4,
  meanHidden: 5,
} as const;

export interface WasmSequenceOptions {
  /** One of wasmOutputs. All but `tokens` take the block cache. */
  readonly output: number;
  /** One of wasmCacheStrategies. */
  readonly cache: number;
  /** 0 is greedy. */
  readonly temperature: number;
  /** 0 is off. */
  readonly topK: number;
  /** 1 is off. */
  readonly topP: number;
  /** 0 is off. */
  readonly minP: number;
  /** 1 is off. */
  readonly repetitionPenalty: number;
  /** 0 is off, as for presencePenalty. */
  readonly frequencyPenalty: number;
  readonly presencePenalty: number;
  /** An id and what is added to its logit, by turns. */
  readonly logitBias: readonly number[];
  /** The seed's low and high 32 bits. */
  readonly seedLow: number;
  readonly seedHigh: number;
  /** Only ids below this are sampled; 0 means the model's whole vocabulary. */
  readonly vocabLimit: number;
  /** At a full context: keep the first nKeep and the latest ids, half a context in all, and go on. */
  readonly shift: boolean;
  /** Less than half the context. */
  readonly nKeep: number;
  /** Look for the prompt's prefix among earlier ones, and leave this one for later ones to find. */
  readonly reusePrefix: boolean;
  /** How many likeliest ids `values()` is to have for each id of the prompt; -1: it has nothing of the prompt. */
  readonly promptLogprobs: number;
}

/** The second of the three numbers of an event. */
export const wasmEventKinds = { prefill: 0, token: 1, failed: 2, done: 3 } as const;

export interface WasmEngine {
  config(): WasmConfig;
  memory(): WasmMemory;
  prefixStats(): WasmPrefixStats;
  /** Starts a generation. Check its status(): not ok means that it holds nothing, and can only be deleted. */
  startSequence(prompt: Int32Array, options: WasmSequenceOptions): WasmSequence;
  /** From what `save` gave; paused. Check its status(). */
  restoreSequence(bytes: Uint8Array): WasmSequence;
  /**
   * Computes one batch: the next token of each sequence that is decoding, and a chunk of a prompt. Returns three numbers
   * for each sequence that took part or failed: its id, one of wasmEventKinds, and the token drawn. Empty when nothing
   * is left to compute. A view into WebAssembly memory: read it before the next call of anything.
   */
  step(): Int32Array;
  /**
   * Numbers: blocks in the pool, tokens in a block, blocks copied on write so far; for each block: references, tokens of it
   * that the prefix tree knows (0: the tree does not hold it), the logical time of its last use there; sequences; for each
   * sequence: id, tokens, length of its block table, the table by position / tokens in a block (-1: dropped by the window).
   * A view, as of `step`.
   */
  cacheView(): Int32Array;
  /** What one head gives to which keys, or all heads of a layer where `head` is -1. Check its status(). */
  attention(ids: Int32Array, layer: number, head: number): WasmAttention;
  /** After all its sequences. */
  delete(): void;
}

export interface WasmAttention {
  status(): WasmStatus;
  /** [heads, ids, ids], if the status is ok. A view, as of `step`. */
  weights(): Float32Array;
  delete(): void;
}

/** Of a sequence whose first status() was not ok, only status() and delete() may be called. */
export interface WasmSequence {
  /** Of its start, or, once it has failed, of the failure. */
  status(): WasmStatus;
  /** Above 0; unique in the engine's life. */
  id(): number;
  /** A paused sequence takes no part in `step`. New ones are not paused, forks and restored ones are. */
  setPaused(paused: boolean): void;
  /** How many more tokens the context has room for; Infinity with `shift`. */
  remaining(): number;
  /** Tokens whose keys and values are computed; the last one drawn is not before the next step. */
  computed(): number;
  /** Tokens of the prompt, or of all before the last `append`, that were computed already. */
  reused(): number;
  /** The context's ids. A view, as of `step`. */
  ids(): Int32Array;
  /** [vocabSize]: what the last token was drawn from, if that was in the last step. A view, as of `step`. */
  logits(): Float32Array | null;
  /**
   * [vocabSize]: of lastLogits and allLogits, those of the last logitsCount() of the ids that are computed, if that was in
   * the last step; null beyond. A view, as of `step`.
   */
  logitsAt(i: number): Float32Array | null;
  logitsCount(): number;
  /**
   * Of logProbabilities: of the second id, the third, ..., as far as they are computed. Of the hidden states, when done:
   * [nEmbd]. With promptLogprobs = n: [ids, 1 + 2 n], for each id of the prompt but the context's first, as far as they
   * are computed, its log-probability, then the id and the log-probability of each of the n likeliest (n: at most the ids
   * that may be drawn). A view, as of `step`.
   */
  values(): Float64Array;
  /**
   * The log-probability of the last token drawn; then the id and the log-probability of each of the `count` likeliest. While
   * logits() is not null; `count` at most the ids that may be drawn. A view, as of `step`.
   */
  logProbabilities(count: number): Float64Array;
  /** Goes on with more ids and new options (the cache strategy stays). An error changes nothing. */
  append(ids: Int32Array, options: WasmSequenceOptions): WasmStatus;
  /** Rolls back to the first `size` ids. */
  truncate(size: number): WasmStatus;
  /** A paused copy that shares the blocks. Check its status(). */
  fork(): WasmSequence;
  /**
   * A copy that draws the last token, its last id, anew from the same logits, by options of its own. While logits() is not
   * null; not paused. Check its status().
   */
  forkAndRedraw(options: WasmSequenceOptions): WasmSequence;
  /** Serialises ids and cache; if ok, `takeSaved` gives the bytes, once, as a copy. */
  save(): WasmStatus;
  takeSaved(): Uint8Array<ArrayBuffer>;
  delete(): void;
}

export interface WasmModule {
  readonly HEAPU8: Uint8Array;
  /** @param configJson The text of config.json; '' for a GGUF file, whose own config counts in any case. */
  readonly Loader: new (
    configJson: string,
    options: WasmEngineOptions,
  ) => WasmLoader;
  /** Of the builds with relaxed SIMD: whether it does here what the kernels rely on. */
  relaxedSimdWorks?(): boolean;
}

/** What the builds with threads have beside. The engine of a loader that was made before the pool has one thread. */
export interface WasmThreads {
  /** The address of a thread's stack, or 0 if there is no memory for it. */
  allocateStack(): number;
  /** Its size. */
  stackBytes(): number;
  /** Once, before any of the threads runs. `threads` counts the caller's, `processors` what they run on. */
  makeThreadPool(threads: number, processors: number): void;
}

export interface WasmModuleOptions {
  /** Instantiates the given imports; calls back with the instance. */
  instantiateWasm(
    imports: WebAssembly.Imports,
    done: (instance: WebAssembly.Instance, module: WebAssembly.Module) => void,
  ): object;
  onAbort?(reason: unknown): void;
  print?(line: string): void;
  printErr?(line: string): void;
  /** Of the builds with threads: shared. */
  wasmMemory?: WebAssembly.Memory;
}

/** The default export of the Emscripten glue, dist/wasm/kvasm-<build>.js. */
export type WasmModuleFactory = (options: WasmModuleOptions) => Promise<WasmModule>;
