/**
 * The surface of the Emscripten module, as bindings/embind.cc registers it. Internal: the worker is its only user.
 * Objects live in WebAssembly memory and are freed by `delete()`.
 */

/** `code` is a KvasmErrorCode, or '' when all is well. */
export interface WasmStatus {
  readonly code: string;
  readonly message: string;
}

export interface WasmConfig {
  readonly nLayer: number;
  readonly nHead: number;
  readonly nKvHead: number;
  readonly nEmbd: number;
  readonly nInner: number;
  readonly nPositions: number;
  readonly vocabSize: number;
  readonly layerNormEpsilon: number;
  /** -1 when config.json names none. */
  readonly eosTokenId: number;
}

/** All in bytes but for `kvTokens`. */
export interface WasmMemory {
  readonly weights: number;
  readonly activations: number;
  readonly kvReserved: number;
  readonly kvUsed: number;
  readonly kvPerToken: number;
  /** Tokens in the cache now. */
  readonly kvTokens: number;
}

/** Takes a safetensors file as it arrives: fill the staging buffer, consume, repeat, finish. */
export interface WasmLoader {
  /** Why the constructor failed (a bad config), or ok. */
  status(): WasmStatus;
  /** Where in HEAPU8 the next bytes go. HEAPU8 must be read anew from the module each time: memory may have grown. */
  stagingAddress(): number;
  stagingSize(): number;
  /** Consumes the first `byteCount` bytes of the staging buffer. */
  consume(byteCount: number): WasmStatus;
  /** The size that the header announces for the whole file in bytes; 0 while the header is incomplete. */
  fileBytes(): number;
  /** Checks that the file was complete, and builds the engine. */
  finish(): WasmStatus;
  /** The engine; once, after `finish` was ok. The loader may then be deleted. */
  takeEngine(): WasmEngine;
  delete(): void;
}

export const wasmCacheStrategies = { block: 0, concat: 1, none: 2 } as const;

export interface WasmSequenceOptions {
  /** One of wasmCacheStrategies. */
  readonly cache: number;
  /** 0 is greedy. */
  readonly temperature: number;
  /** 0 is off. */
  readonly topK: number;
  /** 1 is off. */
  readonly topP: number;
  /** The seed's low and high 32 bits. */
  readonly seedLow: number;
  readonly seedHigh: number;
  /** Only ids below this are sampled; 0 means the model's whole vocabulary. */
  readonly vocabLimit: number;
}

export interface WasmEngine {
  config(): WasmConfig;
  memory(): WasmMemory;
  /** Starts a generation. One at a time: the second must wait until the first is deleted. Check its status(). */
  createSequence(prompt: Int32Array, options: WasmSequenceOptions): WasmSequence;
  delete(): void;
}

export const wasmStepPrefill = -1;
export const wasmStepFailed = -2;

export interface WasmSequence {
  /** Of the constructor or of the last step. */
  status(): WasmStatus;
  /**
   * Computes one chunk of the prompt, or one token. Returns the token's id, wasmStepPrefill while prompt remains to be
   * computed, or wasmStepFailed.
   */
  step(): number;
  /**
   * [vocabSize]: what the last token was drawn from. A view into WebAssembly memory: read it before the next call of
   * anything.
   */
  logits(): Float32Array;
  /** How many more tokens the position table has room for. */
  remaining(): number;
  /** Tokens of the prompt that are computed. */
  prefilled(): number;
  delete(): void;
}

export interface WasmModule {
  readonly HEAPU8: Uint8Array;
  readonly Loader: new (configJson: string, contextLength: number) => WasmLoader;
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
}

/** The default export of the Emscripten glue, dist/wasm/kvasm-<variant>.js. */
export type WasmModuleFactory = (options: WasmModuleOptions) => Promise<WasmModule>;
