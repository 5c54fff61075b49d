import { describeThrown } from '../protocol.js';
import type { LoadWarning, ModelStore } from '../source-types.js';
import {
  type EntryHeader,
  headerName,
  keyOf,
  keyOfName,
  nameVersion,
  parseHeader,
  piecePrefix,
} from './entry-names.js';
import { openPiece, sealPiece } from './pieces.js';

export interface FileCacheOptions {
  readonly store: ModelStore;
  readonly warn: (warning: LoadWarning) => void;
  /** Default 4 MiB. */
  readonly pieceBytes?: number;
  /**
   * Makes its caller the only one who writes under a name, until the function that it resolves to is called; resolves to
   * undefined when another is.
   */
  readonly lock: (name: string) => Promise<(() => void) | undefined>;
}

/** The name under which a list of files is kept, which is no file of a model. */
export const listName = 'list of files';

/** What is lost at the most when a load is cut off, and what a load holds in memory for each file. */
const defaultPieceBytes = 4 * 2 ** 20;

/** Downloads that are kept in a store. Nothing here rejects: what fails is not kept, and told once. */
export class FileCache {
  readonly #options: FileCacheOptions;
  #warned = false;

  constructor(options: FileCacheOptions) {
    this.#options = options;
  }

  /** What is kept of a file, complete or not. */
  async find(identity: string): Promise<CacheEntry | undefined> {
    const { store } = this.#options;
    const key = keyOf(identity);
    return this.attempt(async () => {
      const bytes = await store.get(headerName(key));
      const header = bytes && parseHeader(bytes);
      if (!header || header.identity !== identity) return undefined;
      const prefix = piecePrefix(header);
      const names = new Set((await store.list()).map(({ name }) => name));
      let pieceCount = 0;
      while (names.has(`${prefix}${pieceCount}`)) pieceCount++;
      return new CacheEntry(this, store, header, prefix, pieceCount);
    });
  }

  /** Begins to keep a file, or goes on from the end of an entry's pieces; undefined when another does, or none can. */
  async write(
    header: Omit<
      EntryHeader,
      'format' | 'complete' | 'savedAt' | 'pieceBytes' | 'sha256' | 'version'
    >,
    from: CacheEntry | undefined,
  ): Promise<EntryWriter | undefined> {
    const { store, lock, pieceBytes = defaultPieceBytes } = this.#options;
    const key = keyOf(header.identity);
    const release = await this.attempt(() => lock(`kvasm ${key}`));
    if (!release) return undefined;
    const now = await this.find(header.identity);
    if (now?.isComplete && now.header.version === (from?.header.version ?? nameVersion(header))) {
      // Another load has kept it meanwhile.
      release();
      return undefined;
    }
    if (!from) await this.discard(header.identity);
    const full: EntryHeader = from?.header ?? {
      format: 1,
      ...header,
      version: nameVersion(header),
      pieceBytes,
      sha256: undefined,
      complete: false,
      savedAt: Date.now(),
    };
    return new EntryWriter(this, store, full, from?.pieceCount ?? 0, release);
  }

  /** Keeps a list of a model's files in place of the one that was kept under its identity. */
  async writeList(identity: string, model: string, text: string): Promise<void> {
    const unknown = { etag: undefined, lastModified: undefined, size: undefined };
    const header = { identity, model, file: listName, ...unknown };
    // It has no version by which it could be told from the one before.
    await this.discard(identity);
    const writer = await this.write(header, undefined);
    const bytes = new TextEncoder().encode(text);
    await writer?.write(bytes);
    await writer?.finish(bytes.length, undefined);
    writer?.close();
  }

  async readList(identity: string): Promise<string | undefined> {
    const entry = await this.find(identity);
    if (!entry?.isComplete) return undefined;
    const decoder = new TextDecoder();
    let text = '';
    for (let index = 0; index < entry.pieceCount; index++) {
      text += decoder.decode(await entry.read(index), { stream: true });
    }
    return entry.isComplete ? text + decoder.decode() : undefined;
  }

  async discard(identity: string): Promise<void> {
    const { store } = this.#options;
    const key = keyOf(identity);
    await this.attempt(async () => {
      // First the header, without which the pieces are nothing.
      await store.delete(headerName(key));
      for (const { name } of await store.list()) {
        if (keyOfName(name) === key) await store.delete(name);
      }
    });
  }

  /** The result, or undefined and a warning. */
  async attempt<T>(action: () => Promise<T>): Promise<T | undefined> {
    try {
      return await action();
    } catch (error) {
      if (!this.#warned) this.#options.warn(warningFor(error));
      this.#warned = true;
      return undefined;
    }
  }
}

function warningFor(error: unknown): LoadWarning {
  const isFull = error instanceof Error && error.name === 'QuotaExceededError';
  return isFull
    ? {
        code: 'storage-full',
        message:
          'There is no room to keep the download, so that the next load has to fetch it again.',
      }
    : {
        code: 'storage-failed',
        message: `The storage for downloads fails (${describeThrown(error)}); it is done without.`,
      };
}

/** A file, or the first pieces of one. */
export class CacheEntry {
  readonly header: EntryHeader;
  readonly #cache: FileCache;
  readonly #store: ModelStore;
  readonly #prefix: string;
  #pieceCount: number;

  constructor(
    cache: FileCache,
    store: ModelStore,
    header: EntryHeader,
    prefix: string,
    pieceCount: number,
  ) {
    this.#cache = cache;
    this.#store = store;
    this.header = header;
    this.#prefix = prefix;
    this.#pieceCount = pieceCount;
  }

  get isComplete(): boolean {
    const { complete, size = 0, pieceBytes } = this.header;
    return complete && this.#pieceCount === Math.ceil(size / pieceBytes);
  }

  get pieceCount(): number {
    return this.#pieceCount;
  }

  /** Of an entry that is not complete, whose pieces are all of one size. */
  get byteCount(): number {
    return this.#pieceCount * this.header.pieceBytes;
  }

  /** A piece, or undefined when it is damaged, and so deleted, or gone; those after it then count as not there. */
  async read(index: number): Promise<Uint8Array | undefined> {
    const name = `${this.#prefix}${index}`;
    const sealed = await this.#cache.attempt(() => this.#store.get(name));
    const piece = sealed && (await openPiece(name, sealed));
    const { size, complete, pieceBytes } = this.header;
    const rest = complete && size !== undefined ? size - index * pieceBytes : pieceBytes;
    if (piece?.length === Math.min(rest, pieceBytes)) return piece;
    this.#pieceCount = index;
    // What is gone may have been replaced by now. Nor can a file be deleted that another load writes just now.
    if (sealed) await this.#store.delete(name).catch(() => {});
    return undefined;
  }

  discard(): Promise<void> {
    return this.#cache.discard(this.header.identity);
  }
}

/** Keeps a file while it arrives, in pieces of equal length, each of which a later load can go on from. */
export class EntryWriter {
  readonly #cache: FileCache;
  readonly #store: ModelStore;
  readonly #release: () => void;
  readonly #prefix: string;
  #header: EntryHeader;
  #headerIsStored: boolean;
  #piece: Uint8Array<ArrayBuffer> = new Uint8Array(0);
  #filled = 0;
  #count: number;
  #failed = false;

  constructor(
    cache: FileCache,
    store: ModelStore,
    header: EntryHeader,
    count: number,
    release: () => void,
  ) {
    this.#cache = cache;
    this.#store = store;
    this.#header = header;
    this.#headerIsStored = count > 0;
    this.#count = count;
    this.#release = release;
    this.#prefix = piecePrefix(header);
  }

  /** Resolves when there is room for more. */
  async write(bytes: Uint8Array): Promise<void> {
    const { pieceBytes } = this.#header;
    for (let at = 0; at < bytes.length && !this.#failed; ) {
      const part = bytes.subarray(at, at + pieceBytes - this.#filled);
      this.#reserve(this.#filled + part.length);
      this.#piece.set(part, this.#filled);
      this.#filled += part.length;
      at += part.length;
      if (this.#filled === pieceBytes) await this.#keep(() => this.#storePiece());
    }
  }

  /** The file is whole, and what it should be. */
  async finish(size: number, sha256: string | undefined): Promise<void> {
    await this.#keep(async () => {
      if (this.#filled > 0) await this.#storePiece();
      await this.#storeHeader({ ...this.#header, size, sha256, complete: true });
    });
  }

  /** Ends the writing; what is there stays for the next load to go on from. */
  close(): void {
    this.#release();
  }

  /** Grows as needed, since most files are far smaller than a piece. */
  #reserve(size: number): void {
    if (size <= this.#piece.length) return;
    const { pieceBytes } = this.#header;
    const larger = new Uint8Array(Math.min(Math.max(size, 2 * this.#piece.length), pieceBytes));
    larger.set(this.#piece.subarray(0, this.#filled));
    this.#piece = larger;
  }

  async #storePiece(): Promise<void> {
    if (!this.#headerIsStored) await this.#storeHeader(this.#header);
    const name = `${this.#prefix}${this.#count}`;
    await this.#store.put(name, await sealPiece(name, this.#piece.subarray(0, this.#filled)));
    this.#count++;
    this.#filled = 0;
  }

  async #storeHeader(header: EntryHeader): Promise<void> {
    this.#headerIsStored = true;
    const name = headerName(keyOf(header.identity));
    await this.#store.put(name, new TextEncoder().encode(JSON.stringify(header)));
  }

  /** A file of which a part can't be kept is not kept. */
  async #keep(action: () => Promise<void>): Promise<void> {
    if (this.#failed) return;
    const done = await this.#cache.attempt(async () => {
      await action();
      return true;
    });
    if (done) return;
    this.#failed = true;
    await this.#cache.discard(this.#header.identity);
  }
}
