/** What the two sides of the Worker say to each other. */

import type { Pooling, TextScore } from './compute-types.js';
import { errorFor, type KvasmError, type KvasmErrorCode } from './errors.js';
import type {
  CacheStrategy,
  EngineInfo,
  FinishReason,
  GenerateChunk,
  GenerateResult,
  KvDtype,
  LoadProgress,
  LoadWarning,
  MemoryReport,
  Overflow,
  Variant,
  WeightDtype,
} from './types.js';

/** A file as it can be sent to a Worker. */
export type FileLocation =
  | { readonly kind: 'url'; readonly url: string }
  | { readonly kind: 'path'; readonly path: string }
  | { readonly kind: 'blob'; readonly blob: Blob }
  | { readonly kind: 'bytes'; readonly bytes: Uint8Array }
  /** The other end of the port serves a RemoteStream. */
  | { readonly kind: 'stream'; readonly port: MessagePort; readonly size: number | undefined };

/** A model as it can be sent to a Worker. `file` is the name of the weights, where that is known already. */
export type ModelLocation = { readonly file: string | undefined } & (
  | {
      readonly kind: 'hub';
      readonly hubUrl: string;
      readonly id: string;
      readonly revision: string;
    }
  /** `url` is a folder's, with or without a slash at its end. Its query goes with each file. */
  | { readonly kind: 'folder'; readonly url: string }
  | { readonly kind: 'directory'; readonly path: string }
  | { readonly kind: 'files'; readonly files: Readonly<Record<string, FileLocation>> }
);

/** A `StorageOption` as it can be sent to a Worker. */
export type StorageLocation =
  | { readonly kind: 'auto' | 'opfs' | 'cache-api' | 'off' }
  | { readonly kind: 'directory'; readonly path: string }
  /** The other end of the port serves a ModelStore. */
  | { readonly kind: 'store'; readonly port: MessagePort };

export interface LoadRequest {
  readonly model: ModelLocation;
  readonly download: DownloadRequest;
  readonly build: BuildOptions;
  readonly cache: CacheOptions;
}

/** The options of a load about getting the files, defaults filled in. */
export interface DownloadRequest {
  readonly hubToken: string | undefined;
  readonly sha256: Readonly<Record<string, string>>;
  readonly retries: number;
  readonly storage: StorageLocation;
}

/** The options of a load that choose the WebAssembly build, defaults filled in. */
export interface BuildOptions {
  readonly variant: Variant | undefined;
  readonly threads: number | 'auto';
  /** The folder of the .wasm files, if not the package's own; ends in a slash. */
  readonly wasmUrl: string | undefined;
}

/** The options of a load that shape the engine's memory, defaults filled in. */
export interface CacheOptions {
  readonly dtype: WeightDtype;
  readonly contextLength: number | undefined;
  readonly window: number | undefined;
  readonly kvDtype: KvDtype;
  readonly kvBytes: number | undefined;
  readonly prefixCache: boolean;
  readonly prefillChunk: number;
}

/** How tokens are drawn, checked and with defaults filled in. */
export interface SamplingRequest {
  readonly temperature: number;
  readonly topK: number;
  readonly topP: number;
  readonly minP: number;
  readonly repetitionPenalty: number;
  readonly frequencyPenalty: number;
  readonly presencePenalty: number;
  readonly logitBias: readonly (readonly [token: number, bias: number])[];
  readonly seed: number;
}

export interface PromptRequest {
  /** May be empty in a session. */
  readonly prompt: string | Int32Array;
  readonly allowSpecial: boolean;
}

export interface GenerateRequest extends PromptRequest, SamplingRequest {
  readonly maxTokens: number | undefined;
  readonly logprobs: number | undefined;
  readonly stop: readonly string[];
  readonly stopTokens: readonly number[];
  readonly echo: boolean;
  readonly n: number;
  readonly cache: CacheStrategy;
  readonly overflow: Overflow;
  readonly nKeep: number;
  readonly reusePrefix: boolean;
}

export interface AttentionRequest {
  readonly prompt: string | Int32Array;
  readonly allowSpecial: boolean;
  readonly layer: number;
  /** Undefined for all. */
  readonly head: number | undefined;
}

export interface AttentionAnswer {
  readonly tokens: Int32Array<ArrayBuffer>;
  readonly texts: readonly string[];
  readonly weights: Float32Array<ArrayBuffer>;
}

/** What a finished generation knows beyond the chunks that went before. */
export interface GenerateSummary extends Pick<GenerateResult, 'usage' | 'memory'> {
  readonly choices: readonly {
    readonly finishReason: FinishReason;
    /** U+FFFD when a stop token has cut a character off, else ''. */
    readonly tail: string;
  }[];
  readonly timings: Omit<GenerateResult['timings'], 'load'>;
}

/** Chunks that a generation may be ahead of its consumer. */
export const chunksAhead = 64;

/**
 * Calls that have one answer. Sessions and recordings go by numbers that the client gives them; the Worker makes a session
 * when it is named.
 */
export interface Calls {
  load: { readonly request: LoadRequest; readonly answer: EngineInfo };
  memory: { readonly request: undefined; readonly answer: MemoryReport };
  /** The answer is what cache-view-decoder.ts decodes. */
  cacheView: { readonly request: undefined; readonly answer: Int32Array };
  recordCache: { readonly request: { readonly recording: number }; readonly answer: undefined };
  /** Views, one after the other. */
  takeRecorded: { readonly request: { readonly recording: number }; readonly answer: Int32Array };
  attention: { readonly request: AttentionRequest; readonly answer: AttentionAnswer };
  /** Rows of logits, one after the other. */
  logits: {
    readonly request: PromptRequest & { readonly all: boolean };
    readonly answer: Float32Array;
  };
  embed: {
    readonly request: PromptRequest & { readonly pooling: Pooling };
    readonly answer: Float32Array;
  };
  score: { readonly request: PromptRequest; readonly answer: TextScore };
  encode: {
    readonly request: { readonly text: string; readonly allowSpecial: boolean };
    readonly answer: Int32Array;
  };
  decode: {
    readonly request: { readonly ids: Int32Array; readonly skipSpecial: boolean };
    readonly answer: string;
  };
  ids: { readonly request: { readonly session: number }; readonly answer: Int32Array };
  truncate: {
    readonly request: { readonly session: number; readonly size: number };
    readonly answer: undefined;
  };
  fork: {
    readonly request: { readonly session: number; readonly fork: number };
    readonly answer: undefined;
  };
  save: { readonly request: { readonly session: number }; readonly answer: Uint8Array };
  restore: {
    readonly request: { readonly session: number; readonly bytes: Uint8Array };
    readonly answer: undefined;
  };
}

export type CallName = keyof Calls;

/** `id` names the call that a message belongs to; the client counts them up from 1. */
export type CallMessage = {
  readonly [Name in CallName]: {
    readonly type: Name;
    readonly id: number;
    readonly request: Calls[Name]['request'];
  };
}[CallName];

export type ClientMessage =
  | CallMessage
  | {
      readonly type: 'generate';
      readonly id: number;
      readonly request: GenerateRequest;
      readonly session: number | undefined;
    }
  /** The consumer has taken `count` more chunks; Infinity lifts the limit on running ahead. */
  | { readonly type: 'taken'; readonly id: number; readonly count: number }
  | { readonly type: 'cancel'; readonly id: number }
  /** The session is disposed. */
  | { readonly type: 'drop'; readonly session: number }
  | { readonly type: 'stopRecording'; readonly recording: number };

export type WorkerMessage =
  /** First, in browsers: the Worker's script runs, and listens. */
  | { readonly type: 'ready' }
  /** While it lives, the Worker holds this lock of the Web Locks API: browsers do not tell of every end of a Worker. */
  | { readonly type: 'alive'; readonly lock: string }
  | { readonly type: 'progress'; readonly id: number; readonly progress: LoadProgress }
  | { readonly type: 'warning'; readonly id: number; readonly warning: LoadWarning }
  | { readonly type: 'answer'; readonly id: number; readonly answer: Calls[CallName]['answer'] }
  | { readonly type: 'started'; readonly id: number; readonly sequence: number }
  | { readonly type: 'chunk'; readonly id: number; readonly chunk: GenerateChunk }
  | { readonly type: 'finished'; readonly id: number; readonly summary: GenerateSummary }
  | { readonly type: 'failed'; readonly id: number; readonly error: ErrorMessage }
  /** The WebAssembly instance is beyond use. */
  | { readonly type: 'crashed'; readonly reason: string };

export interface ErrorMessage {
  readonly code: KvasmErrorCode;
  readonly message: string;
  readonly cause: string | undefined;
}

export function packError(error: KvasmError): ErrorMessage {
  const { code, message, cause } = error;
  return { code, message, cause: cause === undefined ? undefined : describeThrown(cause) };
}

export function unpackError({ code, message, cause }: ErrorMessage): KvasmError {
  return errorFor(code, message, cause === undefined ? undefined : { cause: new Error(cause) });
}

/** One line on anything that was thrown, with its causes; WebAssembly code may throw bare numbers. */
export function describeThrown(thrown: unknown): string {
  if (!(thrown instanceof Error)) return String(thrown);
  const cause = thrown.cause === undefined ? '' : `; ${describeThrown(thrown.cause)}`;
  return `${thrown.name}: ${thrown.message}${cause}`;
}
