import { errorFor, type KvasmError } from '../../errors.js';
import { describeThrown } from '../../protocol.js';
import { announcedSize } from '../../source.js';
import type { FileVersion } from '../../storage/entry-names.js';
import type { CacheEntry, EntryWriter, FileCache } from '../../storage/file-cache.js';
import {
  loadFailed,
  type MissingFile,
  type OpenFile,
  ReadAgain,
  refuseStandIns,
} from '../files.js';
import { type Answer, type Network, type Patience, statusOf } from './network.js';
import type { Hash } from './sha256.js';

export interface RemoteLocation {
  readonly url: string;
  /** The hub id or the folder, and the name in it. */
  readonly model: string;
  readonly file: string;
  readonly headers: Readonly<Record<string, string>>;
  /** What the file has to be, as the caller or the hub says. */
  readonly sha256: string | undefined;
  readonly size: number | undefined;
  readonly isHub: boolean;
  /** A name for just these bytes. What is kept under it never has to be asked for again. */
  readonly identity: string | undefined;
}

export interface Downloads {
  readonly network: Network;
  readonly cache: FileCache | undefined;
  readonly makeHash: () => Hash;
}

interface Body {
  /** The next bytes, or undefined at the end. */
  read(): Promise<Uint8Array | undefined>;
  cancel(): Promise<void>;
}

/** An answer whose body begins at a byte of the file. */
interface Connection {
  readonly body: Body;
  readonly version: FileVersion;
  readonly sha256: string | undefined;
  /** The length of the body, which may tell of compressed bytes where pages of other origins do not see that. */
  readonly announced: number | undefined;
  readonly isCompressed: boolean;
}

type Connected =
  | { readonly kind: 'from-there' | 'from-the-start'; readonly connection: Connection }
  /** What there was is no longer there, or cannot be told from something else. */
  | { readonly kind: 'changed' }
  | { readonly kind: 'missing'; readonly reason: string };

/**
 * A file at a URL: what is kept of it, and the rest from the network, from where that was cut off if need be.
 * @throws ModelError `load-failed`
 */
export async function openRemote(
  location: RemoteLocation,
  downloads: Downloads,
): Promise<OpenFile | MissingFile> {
  const { cache } = downloads;
  const file = new RemoteFile(location, downloads);
  const entry = await cache?.find(file.identity);
  return file.open(entry);
}

class RemoteFile {
  readonly identity: string;
  readonly #location: RemoteLocation;
  readonly #downloads: Downloads;
  readonly #patience: Patience;
  #entry: CacheEntry | undefined;
  #version: FileVersion | undefined;
  #sha256: string | undefined;
  #ranges = true;
  #lastCut: unknown;
  #usedStored = false;

  constructor(location: RemoteLocation, downloads: Downloads) {
    this.#location = location;
    this.#downloads = downloads;
    this.#patience = downloads.network.patience();
    this.#sha256 = location.sha256;
    this.identity = location.identity ?? location.url;
  }

  async open(entry: CacheEntry | undefined): Promise<OpenFile | MissingFile> {
    const { url, identity, sha256 } = this.#location;
    if (entry?.isComplete) {
      const now = identity === undefined ? await this.#askForVersion(entry) : 'same';
      if (typeof now === 'object') return now;
      if (now === 'same') {
        this.#goOnFrom(entry);
        return this.#file(undefined);
      }
    } else if (entry && entry.pieceCount > 0) {
      this.#goOnFrom(entry);
    }
    let connected = await this.#connect(this.#entry?.byteCount ?? 0);
    if (connected.kind === 'from-the-start' || connected.kind === 'changed') {
      this.#goOnFrom(undefined);
      if (connected.kind === 'changed') connected = await this.#connect(0);
    }
    if (connected.kind === 'missing') return { label: url, missing: connected.reason };
    if (connected.kind === 'changed') throw loadFailed(url, 'changes while it is fetched');
    const { connection } = connected;
    this.#version = connection.version;
    this.#sha256 = sha256 ?? connection.sha256;
    if (connection.isCompressed) this.#ranges = false;
    return this.#file(connection);
  }

  #goOnFrom(entry: CacheEntry | undefined): void {
    this.#entry = entry;
    this.#version = entry?.header;
  }

  #file(connection: Connection | undefined): OpenFile {
    const { url } = this.#location;
    return {
      label: url,
      size: this.#expectedSize ?? connection?.announced,
      chunks: this.#chunks(connection),
      forget: async () => {
        await this.#downloads.cache?.discard(this.identity);
        return this.#usedStored;
      },
    };
  }

  /** Without a connection, no more than what is kept is needed, as long as that is whole. */
  async *#chunks(open: Connection | undefined): AsyncGenerator<Uint8Array> {
    let connection = open;
    let writer: EntryWriter | undefined;
    // What was checked when it was kept need not be checked again: its pieces have digests of their own.
    const isChecked = this.#sha256 === undefined || this.#entry?.header.sha256 === this.#sha256;
    let hash = isChecked && this.#entry?.isComplete ? undefined : this.#makeHash();
    let at = 0;
    try {
      const entry = this.#entry;
      for (let index = 0; entry && index < entry.pieceCount; index++) {
        const piece = await entry.read(index);
        if (!piece) {
          // From here on it comes from the network.
          await connection?.body.cancel();
          connection = undefined;
          if (at > 0 && !hash && this.#sha256 !== undefined) throw new ReadAgain(this.#mismatch());
          hash ??= at === 0 ? this.#makeHash() : undefined;
          break;
        }
        this.#usedStored = true;
        at += piece.length;
        hash?.update(piece);
        yield piece;
      }
      if (!entry?.isComplete) {
        const network = this.#fromNetwork(connection, at);
        for await (const chunk of at === 0
          ? refuseStandIns(network, this.#location.url)
          : network) {
          writer ??= await this.#startWriting(at === 0 ? undefined : entry);
          at += chunk.length;
          if (this.#expectedSize !== undefined && at > this.#expectedSize)
            this.#check(at, undefined);
          hash?.update(chunk);
          await writer?.write(chunk);
          yield chunk;
        }
      }
      this.#check(at, hash?.digest());
      await writer?.finish(at, this.#sha256);
    } finally {
      writer?.close();
      await connection?.body.cancel().catch(() => {});
    }
  }

  #makeHash(): Hash | undefined {
    return this.#sha256 === undefined ? undefined : this.#downloads.makeHash();
  }

  async #startWriting(entry: CacheEntry | undefined): Promise<EntryWriter | undefined> {
    const { model, file, identity } = this.#location;
    const { etag, lastModified, size } = this.#version ?? {};
    // Without a name for this version, a later load could not tell whether it is the server's still.
    const isNamed = identity !== undefined || etag !== undefined || lastModified !== undefined;
    if (!isNamed) return undefined;
    const header = { identity: this.identity, model, file, etag, lastModified, size };
    return this.#downloads.cache?.write(header, entry);
  }

  get #expectedSize(): number | undefined {
    return this.#location.size ?? this.#version?.size;
  }

  /** @throws ModelError `integrity` */
  #check(size: number, sha256: string | undefined): void {
    const { url } = this.#location;
    const expected = this.#expectedSize;
    if (expected !== undefined && size !== expected) {
      throw errorFor('integrity', `${url}: has ${size} bytes in place of ${expected}.`);
    }
    if (sha256 !== undefined && sha256 !== this.#sha256) {
      throw errorFor(
        'integrity',
        `${url}: its SHA-256 digest is ${sha256} in place of ${this.#sha256}.`,
      );
    }
  }

  async *#fromNetwork(open: Connection | undefined, from: number): AsyncGenerator<Uint8Array> {
    let connection = open;
    let at = from;
    try {
      for (;;) {
        connection ??= await this.#reconnect(at);
        let chunk: Uint8Array | undefined;
        try {
          chunk = await connection.body.read();
        } catch (cause) {
          await this.#patience.pause(this.#cut(cause));
          connection = undefined;
          continue;
        }
        if (!chunk) {
          const expected = this.#expectedSize;
          const isWhole = connection.announced !== undefined && at >= connection.announced;
          if (expected === undefined || at >= expected || isWhole) return;
          // The end of a connection that was cut off, by the looks of it.
          await this.#patience.pause(this.#cut(new Error(`${at} bytes in place of ${expected}`)));
          connection = undefined;
          continue;
        }
        this.#patience.progress(chunk.length);
        at += chunk.length;
        yield chunk;
      }
    } finally {
      await connection?.body.cancel().catch(() => {});
    }
  }

  #cut(cause: unknown): KvasmError {
    this.#lastCut = cause;
    return loadFailed(this.#location.url, `reading stopped (${describeThrown(cause)})`, cause);
  }

  #mismatch(): KvasmError {
    return errorFor('integrity', `${this.#location.url}: what is kept of it is damaged.`);
  }

  /** A connection that yields the bytes from there on. @throws ReadAgain when the file has changed. */
  async #reconnect(at: number): Promise<Connection> {
    const { url } = this.#location;
    const connected = await this.#connect(at);
    if (connected.kind === 'from-there') return connected.connection;
    if (connected.kind === 'missing') throw loadFailed(url, `is gone (${connected.reason})`);
    const why = this.#lastCut === undefined ? '' : ` (${describeThrown(this.#lastCut)})`;
    const reason = `reading stopped${why}, and the server does not go on from there`;
    const changed = loadFailed(url, reason, this.#lastCut);
    if (connected.kind === 'changed') throw new ReadAgain(changed);
    const { connection } = connected;
    if (!this.#isSame(connection.version)) {
      await connection.body.cancel();
      throw new ReadAgain(changed);
    }
    return skip(connection, at);
  }

  async #connect(at: number): Promise<Connected> {
    const { url, headers, isHub } = this.#location;
    const useRange = at > 0 && this.#ranges;
    // What is kept here need not be kept by the browser, too.
    const cache: RequestCache = this.#downloads.cache ? 'no-store' : 'default';
    const init = { cache, headers: { ...headers, ...(useRange && this.#rangeFrom(at)) } };
    let answer: Answer;
    try {
      answer = await this.#downloads.network.request(url, init, this.#patience);
    } catch (error) {
      if (!useRange) throw error;
      // Some servers refuse the header to pages of other origins.
      this.#ranges = false;
      return this.#connect(at);
    }
    const { response } = answer;
    const { status } = response;
    if (status === 404 || status === 410) {
      await response.body?.cancel();
      return { kind: 'missing', reason: statusOf(response) };
    }
    // Not satisfiable: it has become shorter.
    if (status === 416) {
      await response.body?.cancel();
      return { kind: 'changed' };
    }
    if (!response.ok) {
      await response.body?.cancel();
      throw loadFailed(
        url,
        `cannot be fetched (${statusOf(response)}${isHub ? hintFor(response) : ''})`,
      );
    }
    if (isPage(response)) {
      await response.body?.cancel();
      return {
        kind: 'missing',
        reason: `the server answers with an HTML page (${statusOf(response)})`,
      };
    }
    const connection = connectionOf(answer);
    if (status !== 206) return { kind: at === 0 ? 'from-there' : 'from-the-start', connection };
    if ((startOf(response) ?? at) === at && this.#isSame(connection.version)) {
      return { kind: 'from-there', connection };
    }
    await connection.body.cancel();
    this.#ranges = false;
    return { kind: 'changed' };
  }

  #rangeFrom(at: number): Record<string, string> {
    const etag = this.#version?.etag;
    const isOwn =
      typeof location === 'undefined' || new URL(this.#location.url).origin === location.origin;
    // To another origin the header would cost a request for permission; the answer's tag is compared in any case.
    return { Range: `bytes=${at}-`, ...(isOwn && isStrong(etag) && { 'If-Range': etag }) };
  }

  /** Whether bytes of this version go on those that were read, or kept, before. */
  #isSame(now: FileVersion): boolean {
    const before = this.#version;
    const { identity } = this.#location;
    if (!before) return false;
    if (before.size !== undefined && now.size !== undefined && before.size !== now.size) {
      return false;
    }
    if (identity !== undefined) return true;
    if (isStrong(before.etag) && isStrong(now.etag)) return before.etag === now.etag;
    return before.lastModified !== undefined && before.lastModified === now.lastModified;
  }

  /** Whether a kept file is still what the server has; it counts as that while the server can't be asked. */
  async #askForVersion(entry: CacheEntry): Promise<'same' | 'changed' | MissingFile> {
    const { url, headers } = this.#location;
    const kept = entry.header;
    let response: Response;
    try {
      response = await fetch(url, { method: 'HEAD', headers, cache: 'no-cache' });
    } catch {
      return 'same';
    }
    if (response.status === 404 || response.status === 410) {
      await entry.discard();
      return { label: url, missing: statusOf(response) };
    }
    if (!response.ok) return 'same';
    const etag = response.headers.get('etag') ?? undefined;
    const lastModified = response.headers.get('last-modified') ?? undefined;
    if (etag !== undefined && kept.etag !== undefined) {
      return etag === kept.etag ? 'same' : 'changed';
    }
    return lastModified !== undefined && lastModified === kept.lastModified ? 'same' : 'changed';
  }
}

function connectionOf(answer: Answer): Connection {
  const { response, linked } = answer;
  const { headers } = response;
  const range = /^bytes \d+-\d+\/(\d+)$/.exec(headers.get('content-range') ?? '');
  return {
    body: bodyOf(answer),
    version: {
      etag: headers.get('etag') ?? undefined,
      lastModified: headers.get('last-modified') ?? undefined,
      size: linked.size ?? (range ? Number(range[1]) : undefined),
    },
    sha256: linked.sha256,
    announced: response.status === 206 ? undefined : announcedSize(headers),
    isCompressed: headers.has('content-encoding'),
  };
}

function bodyOf({ response, watch }: Answer): Body {
  const reader = response.body?.getReader();
  return {
    read: async () => (reader ? (await watch(reader.read())).value : undefined),
    cancel: async () => reader?.cancel(),
  };
}

/** The same without the first bytes. */
function skip(connection: Connection, byteCount: number): Connection {
  const { body } = connection;
  let left = byteCount;
  const read = async () => {
    for (;;) {
      const chunk = await body.read();
      if (!chunk || left === 0) return chunk;
      const skipped = Math.min(left, chunk.length);
      left -= skipped;
      if (skipped < chunk.length) return chunk.subarray(skipped);
    }
  };
  return { ...connection, body: { read, cancel: () => body.cancel() } };
}

/** The first byte of a part; a header that pages of other origins don't see is as it was asked for. */
function startOf(response: Response): number | undefined {
  const range = response.headers.get('content-range');
  return range === null ? undefined : Number(/^bytes (\d+)-/.exec(range)?.[1] ?? Number.NaN);
}

function isStrong(etag: string | undefined): etag is string {
  return etag !== undefined && !etag.startsWith('W/');
}

/** Servers of one-page sites answer so for each file that they do not have. */
function isPage(response: Response): boolean {
  return /^\s*text\/html\b/i.test(response.headers.get('content-type') ?? '');
}

function hintFor({ status }: Response): string {
  if (status === 401) return '; a private or gated model needs the option hubToken';
  if (status === 403) return '; the token, if there is one, does not open this model';
  return '';
}
