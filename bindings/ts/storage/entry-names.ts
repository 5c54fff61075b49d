import { Sha256 } from '../worker/download/sha256.js';

/** What is kept of a file: a header, and pieces of equal length but for the last. */
export interface EntryHeader {
  readonly format: 1;
  /** Says what is kept: a digest where the hub states one, else the URL. */
  readonly identity: string;
  /** The hub id or the folder that the file was loaded from. */
  readonly model: string;
  readonly file: string;
  readonly etag: string | undefined;
  readonly lastModified: string | undefined;
  /** Of the whole file; known when it was checked. */
  readonly sha256: string | undefined;
  /** In bytes; always known when complete. */
  readonly size: number | undefined;
  /** Tells versions of the file apart. */
  readonly version: string;
  readonly pieceBytes: number;
  readonly complete: boolean;
  /** Milliseconds since 1970. */
  readonly savedAt: number;
}

/** The version of a file that its server names. */
export type FileVersion = Pick<EntryHeader, 'etag' | 'lastModified' | 'size'>;

export function keyOf(identity: string): string {
  return hashText(identity).slice(0, 32);
}

export function headerName(key: string): string {
  return `${key}.json`;
}

/** Pieces of different versions have different names, so that two loads can't mix them. */
export function piecePrefix({ identity, version }: EntryHeader): string {
  return `${keyOf(identity)}.${version}.`;
}

export function nameVersion({ etag, lastModified, size }: FileVersion): string {
  return hashText(JSON.stringify([etag, lastModified, size])).slice(0, 8);
}

/** The entry's key that a name in the store belongs to. */
export function keyOfName(name: string): string {
  return name.split('.')[0] ?? '';
}

/** Undefined for what is no header, or of another format. */
export function parseHeader(bytes: Uint8Array): EntryHeader | undefined {
  try {
    const header = JSON.parse(new TextDecoder().decode(bytes)) as EntryHeader;
    return header.format === 1 && header.pieceBytes > 0 ? header : undefined;
  } catch {
    return undefined;
  }
}

function hashText(text: string): string {
  const hash = new Sha256();
  hash.update(new TextEncoder().encode(text));
  return hash.digest();
}
