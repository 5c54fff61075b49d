/** What the two sides of the Worker say to each other. */

import { errorFor, type KvasmError, type KvasmErrorCode } from './errors.js';
import type {
  CacheStrategy,
  EngineInfo,
  GenerateResult,
  LoadProgress,
  MemoryReport,
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
  readonly contextLength: number | undefined;
  readonly wasmUrl: string | undefined;
}

export interface GenerateRequest {
  readonly prompt: string | Int32Array;
  readonly allowSpecial: boolean;
  readonly maxTokens: number | undefined;
  readonly temperature: number;
  readonly topK: number;
  readonly topP: number;
  readonly seed: number;
  readonly stopTokens: readonly number[] | undefined;
  readonly cache: CacheStrategy;
}

/** What a finished generation knows beyond the chunks that went before. */
export interface GenerateSummary extends Omit<GenerateResult, 'text' | 'tokens'> {
  /** U+FFFD when a stop token has cut a character off, else ''. */
  readonly tail: string;
}

/** Chunks that a generation may be ahead of its consumer. */
export const chunksAhead = 64;

/** `id` names the call that a message belongs to; the client counts them up from 1. */
export type ClientMessage =
  | { readonly type: 'load'; readonly id: number; readonly request: LoadRequest }
  | { readonly type: 'generate'; readonly id: number; readonly request: GenerateRequest }
  /** The consumer has taken `count` more chunks; Infinity lifts the limit on running ahead. */
  | { readonly type: 'taken'; readonly id: number; readonly count: number }
  | { readonly type: 'cancel'; readonly id: number }
  | { readonly type: 'memory'; readonly id: number };

export type WorkerMessage =
  | { readonly type: 'progress'; readonly id: number; readonly progress: LoadProgress }
  | { readonly type: 'loaded'; readonly id: number; readonly info: EngineInfo }
  | { readonly type: 'chunk'; readonly id: number; readonly token: number; readonly text: string }
  | { readonly type: 'finished'; readonly id: number; readonly summary: GenerateSummary }
  | { readonly type: 'memory'; readonly id: number; readonly memory: MemoryReport }
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
