/// <reference lib="esnext.disposable" preserve="true" />

import type { DownloadOptions, LoadProgress } from './source-types.js';

export type * from './compute-types.js';
export type * from './source-types.js';

/** Options of `Engine.load`. */
export interface LoadOptions extends DownloadOptions {
  /** Aborts the load; `Engine.load` then rejects with the signal's reason, and nothing is left behind. */
  signal?: AbortSignal;
  /** Told of every step of the load; what it throws ends the load. */
  onProgress?: (progress: LoadProgress) => void;
  /** How the weights are stored in memory, whatever the file has. Default `q8`. */
  dtype?: WeightDtype;
  /** Positions that a sequence may use; default and maximum: the model's n_positions. */
  contextLength?: number;
  /** Keys that a token sees, its own included: the latest this many. At least 1; default all. */
  window?: number;
  /** How keys and values are stored. Default `f32`. */
  kvDtype?: KvDtype;
  /**
   * Memory for keys and values in bytes, rounded down to whole blocks of 16 tokens. Default: what one sequence of full
   * length needs. More lets more sequences run at once, and more prefixes stay.
   */
  kvBytes?: number;
  /** Whether prompts reuse the keys and values of earlier ones that begin alike. Default true. */
  prefixCache?: boolean;
  /** Prompt tokens that one forward pass takes at the most; running streams stall no longer than that. Default 64. */
  prefillChunk?: number;
  /**
   * Threads to compute with, from 1 to 128. Default `auto`: half of the processors, at least 1 and at most 8. A page needs
   * to be cross-origin isolated for more than 1; where it is not, 1 thread computes, with a warning if more were asked for.
   * The tokens are the same.
   */
  threads?: number | 'auto';
  /** Which instructions to use. Default: the fastest that work here. Asking for one that does not is ModelError `unsupported`. */
  variant?: Variant;
  /** The folder of the package's .wasm files, or any of them, if they are not beside its other files. */
  wasmUrl?: string | URL;
  /** Where the worker's script is, if not beside the package's own files. */
  workerUrl?: string | URL;
}

/**
 * The instructions of a WebAssembly build: vectors of 128 bits, or also the relaxed ones, whose last bit may differ between
 * processors.
 */
export type Variant = 'simd' | 'relaxed-simd';

/** What `config.json` says of the model's shape. */
export interface ModelConfig {
  /** Transformer blocks: `n_layer`. */
  readonly nLayer: number;
  /** Query heads: `n_head`. */
  readonly nHead: number;
  /** Key and value heads: `n_kv_head`, and `n_head` where the config has none. */
  readonly nKvHead: number;
  /** Width of the embeddings: `n_embd`. */
  readonly nEmbd: number;
  /** Width of the feed-forward layers: `n_inner`, by default 4 * `n_embd`. */
  readonly nInner: number;
  /** Rows of the position table: `n_positions`. */
  readonly nPositions: number;
  /** Rows of the embedding table: `vocab_size`. */
  readonly vocabSize: number;
  /** `layer_norm_epsilon`. */
  readonly layerNormEpsilon: number;
}

/**
 * `f32` computes with the file's numbers. `q8` and `q4` round them to 8 and 4 bits as they stream in, with a scale for each
 * 32 that are summed up: 9 and 4.5 bits in all, and faster by about as much; activations are rounded to match.
 */
export type WeightDtype = 'f32' | 'q8' | 'q4';

/**
 * `f32` as they are computed; `f16` in half of that; `q8` in about a quarter: 8 bits each, and a scale for each token and
 * head. The lesser ones change the logits a little, the same way with every cache strategy.
 */
export type KvDtype = 'f32' | 'f16' | 'q8';

/** What an engine has loaded, and how. */
export interface EngineInfo {
  /** The model's shape. */
  readonly config: ModelConfig;
  /** How many ids the tokenizer has. Ids that the model has beyond them are padding, and never drawn. */
  readonly vocabSize: number;
  /** What the model's `generation_config.json` says about options of `generate`; they are the options' defaults. */
  readonly defaults: GenerationDefaults;
  /** The end-of-text id, or undefined where neither the config nor the tokenizer names one. */
  readonly endOfText: number | undefined;
  /** The WebAssembly build in use. */
  readonly variant: Variant;
  /** Why that one. */
  readonly variantReason: string;
  /** Threads that compute. */
  readonly threads: number;
  /** Why that many. */
  readonly threadsReason: string;
  /** How the weights are stored. */
  readonly dtype: WeightDtype;
  /** Positions that a sequence may use. */
  readonly contextLength: number;
  /** Keys that a token sees, or undefined for all. */
  readonly window: number | undefined;
  /** How keys and values are stored. */
  readonly kvDtype: KvDtype;
  /** Memory reserved for keys and values, in bytes. */
  readonly kvBytes: number;
  /** Whether prompts reuse what earlier ones that begin alike have computed. */
  readonly prefixCache: boolean;
  /** Prompt tokens that one forward pass takes at the most. */
  readonly prefillChunk: number;
}

/**
 * How keys and values are kept: `block` in the preallocated cache; `concat` in a cache that is reallocated and copied at
 * each token, as textbooks do; `none` computes everything anew for each token. All three yield the same bits.
 */
export type CacheStrategy = 'block' | 'concat' | 'none';

/**
 * What happens when the context is full. A cached key carries its absolute position, so keys cannot move to make room.
 * `stop` ends the run, with the finish reason `length`. `shift` keeps the first `nKeep` ids and the latest ones, half a
 * context in all, computes them anew from position 0, and goes on. `error` throws GenerationError `context-full` after
 * the last token that fits.
 */
export type Overflow = 'stop' | 'shift' | 'error';

/**
 * Options of `Engine.generate` and `Session.generate`. The model's logits pass them in this order: `repetitionPenalty`,
 * `frequencyPenalty`, `presencePenalty`, `logitBias`; `temperature`, `topK`, `topP` (of what `topK` has left), `minP`. Where
 * the model names a default itself (`EngineInfo.defaults`), it holds in place of the one given here.
 */
export interface GenerateOptions {
  /** Tokens to generate at the most. Default: as many as the context has room for; with `shift`, no limit. */
  maxTokens?: number;
  /** 0 is greedy: the largest logit, ties to the lowest id. Default 1. */
  temperature?: number;
  /** Sample among the k likeliest only; 0 is off. Default 0. */
  topK?: number;
  /** Sample among the smallest set of likeliest tokens whose probabilities sum to at least this. Default 1, off. */
  topP?: number;
  /** Sample among tokens that are at least this as likely as the likeliest, from 0 to 1. Default 0, off. */
  minP?: number;
  /**
   * Above 1 it makes tokens of the prompt and the output less likely, below 1 likelier: their logits are divided by it where
   * positive, multiplied where negative, once however often a token is there. Default 1, off. As in Hugging Face
   * transformers (CTRL, Keskar et al. 2019).
   */
  repetitionPenalty?: number;
  /**
   * Taken from the logit of a token for each time that it is in the output; the prompt does not count. Default 0, off. As in
   * OpenAI's API.
   */
  frequencyPenalty?: number;
  /** Taken from the logits of tokens that are in the output, once; the prompt does not count. Default 0, off. As in OpenAI's API. */
  presencePenalty?: number;
  /** Added to the logits of tokens by their ids; -Infinity rules one out. Default: none. */
  logitBias?: Readonly<Record<number, number>>;
  /** An integer from 0 to 2^53 - 1. The same seed, prompt and options give the same tokens. Default: random. */
  seed?: number;
  /**
   * Tell with each token its log-probability, and the likeliest this many tokens with theirs; 0 or more. Default: off. They
   * are natural logarithms of the model's own distribution: before temperature and all else that these options do to it.
   * With `echo`, the prompt's tokens have theirs, but for the context's first, which comes after nothing; the prompt is then
   * computed whole, whatever of it is known, and put out when it is.
   */
  logprobs?: number;
  /**
   * Texts that end the generation where the output has one of them, the first that is complete: neither it nor what comes
   * after it in the same token is part of the output. Tokens that may begin one are held back until it is clear. Default: none.
   */
  stop?: string | readonly string[];
  /** Ids that end the generation; not part of the output. Default: the end-of-text id. */
  stopTokens?: readonly number[];
  /** Put the prompt's tokens, with their texts, out before those that are drawn. Default false. */
  echo?: boolean;
  /**
   * How many completions of the prompt, which is computed once for all of them; 1 to 128. The one with index i is drawn with
   * the seed + i. Chunks tell theirs by `index`. Default 1, which is all that sessions and other cache strategies do.
   */
  n?: number;
  /** Read control tokens such as `<|endoftext|>` that a text prompt spells out. Default false. */
  allowSpecial?: boolean;
  /** Default `block`, which is the only one that sessions take. */
  cache?: CacheStrategy;
  /** Default `stop`. */
  overflow?: Overflow;
  /** First ids that `shift` keeps; less than half the context. Default 0. */
  nKeep?: number;
  /**
   * Whether to take the keys and values of an earlier prompt that begins alike, and to leave these to later ones. Default
   * true. Without effect on the tokens, and where the engine has no prefix cache.
   */
  reusePrefix?: boolean;
  /** Ends the generation between tokens or prefill chunks; the iterator then throws the signal's reason. */
  signal?: AbortSignal;
}

/** Options of `generate` that a model names itself, by its `generation_config.json`. */
export type GenerationDefaults = Readonly<
  Pick<
    GenerateOptions,
    'maxTokens' | 'temperature' | 'topK' | 'topP' | 'minP' | 'repetitionPenalty' | 'stopTokens'
  >
>;

/** Text, or token ids in any array or typed array; arrays of the same ids are the same prompt. */
export type Prompt = string | ArrayLike<number> | ArrayLike<bigint>;

/** A token, and the natural logarithm of the probability that the model gives it. */
export interface TokenLogprob {
  /** The token's id. */
  readonly token: number;
  /** The token alone, with U+FFFD for a part of a character. */
  readonly text: string;
  /** At most 0; -Infinity for a probability of 0. */
  readonly logprob: number;
}

/** One generated token; with `echo`, one of the prompt's at first. */
export interface GenerateChunk {
  /** Which of the `n` completions it is of, from 0 on. */
  readonly index: number;
  /** Its id. */
  readonly token: number;
  /** The characters that this token completes; empty while a UTF-8 character is incomplete. */
  readonly text: string;
  /** With the option `logprobs`: the token's. */
  readonly logprob?: number;
  /** With the option `logprobs`: the likeliest tokens, the likeliest first, whether or not the token is one of them. */
  readonly topLogprobs?: readonly TokenLogprob[];
}

/** `stop`: a stop token was drawn, or a stop string is complete. `length`: maxTokens, or the end of the context. */
export type FinishReason = 'stop' | 'length';

/** One completion of a prompt. */
export interface Choice {
  /** Its number, from 0 on. */
  readonly index: number;
  /** The chunks' texts joined; then U+FFFD, if a stop token has cut a character off. */
  readonly text: string;
  /**
   * The ids that were put out: those drawn, but for a stop token or those of a stop string. A token that a stop string begins
   * in the middle of is one of them, though its text is cut. With `echo`, the prompt's are before them.
   */
  readonly tokens: Int32Array;
  /** Why it ended. */
  readonly finishReason: FinishReason;
  /** With the option `logprobs`: the chunks, one for each of `tokens`. */
  readonly chunks?: readonly GenerateChunk[];
}

/** A complete run: the first of its choices, which mostly is the only one, and what is common to all. */
export interface GenerateResult extends Omit<Choice, 'index'> {
  /** The `n` completions, by index. */
  readonly choices: readonly Choice[];
  /** In tokens. */
  readonly usage: {
    /** What the run started from: the prompt, and in a session all that was before it. */
    readonly prompt: number;
    /** The part of `prompt` whose keys and values were there already, so that only the rest was computed. */
    readonly cached: number;
    /** The tokens put out after the prompt, of all choices: those drawn, but for stop tokens and those of stop strings. */
    readonly completion: number;
  };
  /** Milliseconds. */
  readonly timings: {
    /** From the call of `Engine.load` until the engine was there; the same for each of its runs. */
    readonly load: number;
    /** The forward passes over the prompt, up to the logits for the first token, and what else was computed in them. */
    readonly prefill: number;
    /** From the call of `generate` reaching the worker until the first token was drawn. */
    readonly firstToken: number;
    /**
     * From the first token drawn to the last, which includes a stop token, the work for runs beside this one, and waiting
     * for a consumer that is more than 64 tokens behind.
     */
    readonly decode: number;
    /** `firstToken` and `decode`, and what lies between and after. */
    readonly total: number;
    /** Tokens drawn after the first, for all choices, per second of `decode`; undefined for fewer than two. */
    readonly tokensPerSecond: number | undefined;
  };
  /** The engine's memory as the last token left it, other runs' share included. */
  readonly memory: MemoryReport;
}

/**
 * A run of `Engine.generate`. It starts when its first token or its result is asked for, and runs once: iterate over it,
 * take its result, or both. Errors, an abort's reason included, come from both.
 */
export interface Generation extends AsyncIterable<GenerateChunk> {
  /** The id by which `Engine.cacheView` calls it, or the first of its choices; undefined before its first token. */
  readonly sequence: number | undefined;
  /**
   * The tokens as they are drawn. Leaving the loop early cancels the run. The model runs at most 64 tokens ahead of the
   * loop, unless `result` was called.
   * @throws InvalidArgumentError when called a second time.
   */
  [Symbol.asyncIterator](): AsyncIterableIterator<GenerateChunk>;
  /**
   * The whole run, whether or not it is iterated over. Rejects with an AbortError when the loop over it was left before its end.
   */
  result(): Promise<GenerateResult>;
}

/**
 * A conversation: a context that stays, so that each call computes only what is new to it. Does one thing at a time: while
 * it generates, every other call but `ids` and `dispose` rejects with GenerationError `busy`. A call on a session that was
 * disposed, or whose engine was, rejects with EngineClosedError.
 */
export interface Session {
  /**
   * Appends the prompt to the context and continues it; the tokens drawn become part of the context, but for a stop token.
   * An empty prompt continues what is there. An aborted or failed run leaves the prompt and the tokens drawn so far, which
   * may be more than were taken; `maxTokens: 0` leaves the prompt. With `overflow: 'shift'` a prompt that has no room makes
   * the context shift, and stays whole. Otherwise as `Engine.generate`.
   */
  generate(prompt: Prompt, options?: GenerateOptions): Generation;
  /** The context's token ids: prompts and tokens drawn. With `overflow: 'shift'`, those that it kept. */
  ids(): Promise<Int32Array>;
  /**
   * Rolls back to the first `size` ids.
   * @throws InvalidArgumentError when there are fewer.
   */
  truncate(size: number): Promise<void>;
  /** A session of its own with the same context; the two share the memory of what they have in common. */
  fork(): Promise<Session>;
  /**
   * The context with its keys and values, for `Engine.restore`: about `kv.perToken` bytes a token.
   * @throws InvalidArgumentError when nothing was computed yet.
   */
  save(): Promise<Uint8Array>;
  /**
   * Frees its memory, which it holds until then, or until the garbage collector finds it unreachable; a run under way fails
   * with EngineClosedError `disposed`.
   */
  dispose(): Promise<void>;
  /** So that `await using` disposes of the session. */
  [Symbol.asyncDispose](): Promise<void>;
}

/** In bytes, but for `kv.tokens` and `prefix`. */
export interface MemoryReport {
  /** The model's weights. */
  readonly weights: number;
  /** What the forward passes compute in. */
  readonly activations: number;
  /** Keys and values. */
  readonly kv: {
    /** The pool of blocks, and what runs with another cache strategy hold beside it. */
    readonly reserved: number;
    /** `tokens * perToken`. */
    readonly used: number;
    /** What sequences hold by sharing blocks rather than having them twice. */
    readonly shared: number;
    /** Blocks of no sequence, kept for prompts that begin alike until the room is needed. */
    readonly cached: number;
    /** 2 * n_layer * n_kv_head * (4 * head_dim for f32, 2 * head_dim for f16, head_dim + 4 for q8). */
    readonly perToken: number;
    /** Tokens whose keys and values sequences hold, counted for each sequence that holds them. */
    readonly tokens: number;
  };
  /** How prompts found their beginnings in the cache. */
  readonly prefix: PrefixStats;
  /** The size of the WebAssembly memory. */
  readonly heap: number;
}

/** How prompts found their beginnings in the cache. All counts since the load but for `blocks`. */
export interface PrefixStats {
  /** Prompts that were looked up. */
  readonly lookups: number;
  /** Lookups that reused at least one token. */
  readonly hits: number;
  /** Tokens that did not have to be computed. */
  readonly tokensReused: number;
  /** Blocks that are kept for reuse now, those that sequences hold too included. */
  readonly blocks: number;
  /** Blocks that were given up to make room. */
  readonly evictions: number;
}
