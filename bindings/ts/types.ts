/** One file of a model: where it is, or what is in it. */
export type FileSource = string | URL | Blob | ArrayBuffer | Uint8Array;

/**
 * A model's files by their Hugging Face names: `config.json`, `model.safetensors`, and either `tokenizer.json` or
 * `vocab.json` with `merges.txt`.
 */
export type ModelFiles = Readonly<Record<string, FileSource>>;

/**
 * Where a model is: the URL of a folder with its files, a Hugging Face hub id (`openai-community/gpt2`), in Node also
 * the path of a directory, or the files themselves.
 */
export type ModelSource = string | URL | ModelFiles;

export interface LoadProgress {
  readonly phase: 'config' | 'tokenizer' | 'weights' | 'ready';
  /** Bytes of the phase's file so far. */
  readonly loaded: number;
  /** Bytes of the phase's file, or undefined while unknown. */
  readonly total: number | undefined;
}

export interface LoadOptions {
  /** Aborts the load; `Engine.load` then rejects with the signal's reason, and nothing is left behind. */
  signal?: AbortSignal;
  onProgress?: (progress: LoadProgress) => void;
  /** Positions to reserve key/value memory for; default and maximum: the model's n_positions. */
  contextLength?: number;
  /** Base URL of the hub for hub ids. Default `https://huggingface.co`. */
  hubUrl?: string | URL;
  /** A branch, tag or commit for hub ids. Default `main`. */
  revision?: string;
  /** Where the .wasm file is, if not beside the package's own files. */
  wasmUrl?: string | URL;
  /** Where the worker's script is, if not beside the package's own files. */
  workerUrl?: string | URL;
}

export interface ModelConfig {
  readonly nLayer: number;
  readonly nHead: number;
  readonly nKvHead: number;
  readonly nEmbd: number;
  readonly nInner: number;
  readonly nPositions: number;
  readonly vocabSize: number;
  readonly layerNormEpsilon: number;
}

export interface EngineInfo {
  readonly config: ModelConfig;
  /** The end-of-text id, or undefined where neither the config nor the tokenizer names one. */
  readonly endOfText: number | undefined;
  /** The WebAssembly build in use. */
  readonly variant: string;
  readonly threads: number;
}

/**
 * How keys and values are kept: `block` in the preallocated cache; `concat` in a cache that is reallocated and copied at
 * each token, as textbooks do; `none` computes everything anew for each token. All three yield the same bits.
 */
export type CacheStrategy = 'block' | 'concat' | 'none';

export interface GenerateOptions {
  /** Tokens to generate at the most. Default: as many as the position table has room for. */
  maxTokens?: number;
  /** 0 is greedy: the largest logit, ties to the lowest id. Default 1. */
  temperature?: number;
  /** Sample among the k likeliest only; 0 is off. Default 0. */
  topK?: number;
  /** Sample among the smallest set of likeliest tokens whose probabilities sum to at least this. Default 1, off. */
  topP?: number;
  /** An integer from 0 to 2^53 - 1. The same seed, prompt and options give the same tokens. Default: random. */
  seed?: number;
  /** Ids that end the generation; not part of the output. Default: the end-of-text id. */
  stopTokens?: readonly number[];
  /** Read control tokens such as `<|endoftext|>` that a text prompt spells out. Default false. */
  allowSpecial?: boolean;
  /** Default `block`. */
  cache?: CacheStrategy;
  /** Ends the generation between tokens or prefill chunks; the iterator then throws the signal's reason. */
  signal?: AbortSignal;
}

/** Text, or token ids in any array or typed array; arrays of the same ids are the same prompt. */
export type Prompt = string | ArrayLike<number> | ArrayLike<bigint>;

/** One generated token. */
export interface GenerateChunk {
  readonly token: number;
  /** The characters that this token completes; empty while a UTF-8 character is incomplete. */
  readonly text: string;
}

/** `stop`: a stop token was drawn. `length`: maxTokens, or the end of the position table. */
export type FinishReason = 'stop' | 'length';

export interface GenerateResult {
  /** The chunks' texts joined; then U+FFFD, if a stop token has cut a character off. */
  readonly text: string;
  readonly tokens: Int32Array;
  readonly finishReason: FinishReason;
  readonly usage: { readonly prompt: number; readonly completion: number };
  /** Milliseconds. */
  readonly timings: {
    /** The forward passes over the prompt, up to the logits for the first token. */
    readonly prefill: number;
    /** From the call of `generate` reaching the worker until the first token was drawn. */
    readonly firstToken: number;
    /**
     * From the first token drawn to the last, which includes a stop token, and waiting for a consumer that is more than
     * 64 tokens behind.
     */
    readonly decode: number;
    /** `firstToken` and `decode`, and what lies between and after. */
    readonly total: number;
    /** Tokens drawn after the first, per second of `decode`; undefined for fewer than two. */
    readonly tokensPerSecond: number | undefined;
  };
  /** The cache as the last token left it. */
  readonly memory: MemoryReport;
}

/**
 * A run of `Engine.generate`. It starts when its first token or its result is asked for, and runs once: iterate over it,
 * take its result, or both. Errors, an abort's reason included, come from both.
 */
export interface Generation extends AsyncIterable<GenerateChunk> {
  /**
   * The tokens as they are drawn. Leaving the loop early cancels the run. The model runs at most 64 tokens ahead of the
   * loop, unless `result` was called or another run waits for its turn.
   * @throws InvalidArgumentError when called a second time.
   */
  [Symbol.asyncIterator](): AsyncIterableIterator<GenerateChunk>;
  /**
   * The whole run, whether or not it is iterated over. Rejects with an AbortError when the loop over it was left before its end.
   */
  result(): Promise<GenerateResult>;
}

/** In bytes, but for `kv.tokens`. */
export interface MemoryReport {
  readonly weights: number;
  readonly activations: number;
  readonly kv: {
    readonly reserved: number;
    readonly used: number;
    /** 2 * n_layer * n_kv_head * head_dim * 4. */
    readonly perToken: number;
    readonly tokens: number;
  };
  /** The size of the WebAssembly memory. */
  readonly heap: number;
}
