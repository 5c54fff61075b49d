/** What a model can be loaded from, how it is downloaded, and where downloads are kept. */

/** One file of a model: where it is, or what is in it. */
export type FileSource =
  | string
  | URL
  | Blob
  | ArrayBuffer
  | Uint8Array
  | Response
  | ReadableStream<Uint8Array>;

/** A model's files by their names; `modelFileNames` lists those that are looked for, others are ignored. */
export type ModelFiles = Readonly<Record<string, FileSource>>;

/**
 * Where a model is:
 * - a Hugging Face hub id: `openai-community/gpt2`, or `openai-community/gpt2@revision`
 * - the URL of a folder with its files, or of its weights (`.safetensors`, `.safetensors.index.json`, `.gguf`)
 * - in Node, the path of a directory, or of its weights
 * - its files: an object by name, a `FileList` or any other iterable of `File`s, a `FileSystemDirectoryHandle`, or the
 *   `DataTransfer` of a drop event, folders in it included
 * - what is in a GGUF file, which has everything: a `Blob`, `ArrayBuffer`, `Uint8Array`, `Response` or `ReadableStream`
 */
export type ModelSource =
  | FileSource
  | ModelFiles
  | Iterable<File>
  | FileSystemDirectoryHandle
  | DataTransfer;

/** How far a load is. */
export interface LoadProgress {
  /** What is being read; `ready` is the last report. */
  readonly phase: 'config' | 'tokenizer' | 'weights' | 'ready';
  /** The file's name; undefined when `ready`. */
  readonly file: string | undefined;
  /** Bytes of the file so far; of all weights when `ready`. Starts anew when a file has to be read again. */
  readonly loaded: number;
  /** Bytes of the file, or undefined while unknown; never less than `loaded`. */
  readonly total: number | undefined;
  /** The same over all files of the load. */
  readonly overall: {
    /** Bytes of all files so far. */
    readonly loaded: number;
    /** Bytes of all files, or undefined while unknown. */
    readonly total: number | undefined;
  };
}

/** Something went wrong that a load can do without. */
export interface LoadWarning {
  /**
   * `storage-full`: no room to keep the download. `storage-failed`: it cannot be kept, or what was kept cannot be read.
   * `fewer-threads`: fewer compute than were asked for.
   */
  readonly code: 'storage-full' | 'storage-failed' | 'fewer-threads';
  /** For a person to read. */
  readonly message: string;
}

/**
 * A place for downloads: byte strings of up to about 4 MiB by name. Names consist of lower-case letters, digits and dots.
 * Anything that can do this will do, an IndexedDB for example. What it gives back is checked, so that torn, mixed up or
 * vanished byte strings cost no more than a download; a method that rejects costs a warning.
 */
export interface ModelStore {
  /** What was put under the name last, or undefined. */
  get(name: string): Promise<Uint8Array | undefined>;
  /** Creates or replaces. A rejection with a `QuotaExceededError` says that there is no room. */
  put(name: string, bytes: Uint8Array<ArrayBuffer>): Promise<void>;
  /** Does nothing where there is none. */
  delete(name: string): Promise<void>;
  /** All that there is, in any order. */
  list(): Promise<readonly StoredBytes[]>;
}

/** A byte string in a `ModelStore`. */
export interface StoredBytes {
  /** As it was put. */
  readonly name: string;
  /** In bytes. */
  readonly size: number;
}

/**
 * Where downloads are kept:
 * - `auto`: browsers' Origin Private File System, the Cache API where that is missing, else nowhere; in Node nowhere
 * - `opfs` or `cache-api`: that one, if the browser has it
 * - `off`: nowhere
 * - `{ directory }`: in Node, a directory, which is made if it is not there
 * - a `ModelStore` of your own
 */
export type StorageOption =
  | 'auto'
  | 'opfs'
  | 'cache-api'
  | 'off'
  | {
      /** A path. */
      readonly directory: string;
    }
  | ModelStore;

/** The options of `Engine.load` about getting the files. */
export interface DownloadOptions {
  /** Base URL of the hub for hub ids. Default `https://huggingface.co`. */
  hubUrl?: string | URL;
  /** A branch, tag or commit for hub ids. Default `main`. */
  revision?: string;
  /** An access token for private and gated models. Sent to the hub and to nobody else. */
  hubToken?: string;
  /** The weights' file, where a folder has several: `gpt2.Q8_0.gguf`. Default: see the README. */
  file?: string;
  /** SHA-256 digests in hex by file name. A file that is another is refused. The hub states those of weights itself. */
  sha256?: Readonly<Record<string, string>>;
  /**
   * How often a failing request is tried again, with growing pauses of random length. The count starts anew after a
   * mebibyte of progress. From 0 to 100. Default 5; at most 2 before a server has answered for the first time.
   */
  retries?: number;
  /** Where downloads are kept. Default `auto`. */
  storage?: StorageOption;
  /** Default: `console.warn`. */
  onWarning?: (warning: LoadWarning) => void;
}
