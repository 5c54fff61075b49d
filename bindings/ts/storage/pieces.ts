import { Sha256 } from '../worker/download/sha256.js';

const digestBytes = 32;

/** A piece as it is stored: its bytes, its name, and a digest of both. */
export async function sealPiece(name: string, bytes: Uint8Array): Promise<Uint8Array<ArrayBuffer>> {
  const tag = new TextEncoder().encode(name);
  const sealed = new Uint8Array(bytes.length + tag.length + digestBytes);
  sealed.set(bytes);
  sealed.set(tag, bytes.length);
  const end = bytes.length + tag.length;
  sealed.set(await digestOf(sealed.subarray(0, end)), end);
  return sealed;
}

/** The bytes of a piece, or undefined when they are not what was stored under this name. */
export async function openPiece(name: string, sealed: Uint8Array): Promise<Uint8Array | undefined> {
  const tag = new TextEncoder().encode(name);
  const end = sealed.length - digestBytes;
  const size = end - tag.length;
  if (size < 0 || !isEqual(sealed.subarray(size, end), tag)) return undefined;
  const digest = await digestOf(sealed.subarray(0, end));
  return isEqual(sealed.subarray(end), digest) ? sealed.subarray(0, size) : undefined;
}

async function digestOf(bytes: Uint8Array): Promise<Uint8Array> {
  // Missing on pages without HTTPS.
  if (globalThis.crypto?.subtle) {
    return new Uint8Array(await crypto.subtle.digest('SHA-256', bytes as Uint8Array<ArrayBuffer>));
  }
  const hash = new Sha256();
  hash.update(bytes);
  const hex = hash.digest();
  return Uint8Array.from({ length: digestBytes }, (_, i) =>
    Number.parseInt(hex.slice(2 * i, 2 * i + 2), 16),
  );
}

function isEqual(a: Uint8Array, b: Uint8Array): boolean {
  return a.length === b.length && a.every((byte, i) => byte === b[i]);
}
