/** What the two sides of the Worker say to each other. */

import { errorFor, type KvasmError, type KvasmErrorCode } from './errors.js';
import type {
  CacheStrategy,
  EngineInfo,
  GenerateChunk,
  GenerateResult,
  KvDtype,
  LoadProgress,
  MemoryReport,
  Overflow,
} from './types.js';

export const modelFileNames = [
  'config.json',
  'tokenizer.json',
  'vocab.json',
  'merges.txt',
  'model.safetensors',
] as const;

export type ModelFileName = (typeof modelFileNames)[number];

/** A file as it can be sent to a Worker. */
export type FileLocation =
  | { readonly kind: 'url'; readonly url: string }
  | { readonly kind: 'path'; readonly path: string }
  | { readonly kind: 'blob'; readonly blob: Blob }
  | { readonly kind: 'bytes'; readonly bytes: Uint8Array };

/** Files that are not listed are not there; files that are listed may turn out not to be. */
export type ModelLocations = Readonly<Partial<Record<ModelFileName, FileLocation>>>;

export interface LoadRequest {
  readonly files: ModelLocations;
  readonly wasmUrl: string | undefined;
  readonly cache: CacheOptions;
}

/** The options of a load that shape the cache, defaults filled in. */
export interface CacheOptions {
  readonly contextLength: number | undefined;
  readonly window: number | undefined;
  readonly kvDtype: KvDtype;
  readonly kvBytes: number | undefined;
  readonly prefixCache: boolean;
  readonly prefillChunk: number;
}

export interface GenerateRequest {
  /** May be empty in a session. */
  readonly prompt: string | Int32Array;
  readonly allowSpecial: boolean;
  readonly maxTokens: number | undefined;
  readonly temperature: number;
  readonly topK: number;
  readonly topP: number;
  readonly minP: number;
  readonly repetitionPenalty: number;
  readonly frequencyPenalty: number;
  readonly presencePenalty: number;
  readonly logitBias: readonly (readonly [token: number, bias: number])[];
  readonly seed: number;
  readonly logprobs: number | undefined;
  readonly stopTokens: readonly number[] | undefined;
  readonly cache: CacheStrategy;
  readonly overflow: Overflow;
  readonly nKeep: number;
  readonly reusePrefix: boolean;
}

/** What a finished generation knows beyond the chunks that went before. */
export interface GenerateSummary extends Omit<GenerateResult, 'text' | 'tokens'> {
  /** U+FFFD when a stop token has cut a character off, else ''. */
  readonly tail: string;
}

/** Chunks that a generation may be ahead of its consumer. */
export const chunksAhead = 64;

/** Calls that have one answer. Sessions go by numbers that the client gives them; the Worker makes one when it is named. */
export interface Calls {
  load: { readonly request: LoadRequest; readonly answer: EngineInfo };
  memory: { readonly request: undefined; readonly answer: MemoryReport };
  /** The answer is what cache-view.ts decodes. */
  cacheView: { readonly request: undefined; readonly answer: Int32Array };
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
  | { readonly type: 'drop'; readonly session: number };

export type WorkerMessage =
  | { readonly type: 'progress'; readonly id: number; readonly progress: LoadProgress }
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
