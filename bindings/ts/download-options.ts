import { checkInteger, refuse } from './checks.js';
import { isWeights } from './model-files.js';
import type { DownloadRequest, StorageLocation } from './protocol.js';
import { serveObject } from './remote.js';
import { servedStore } from './storage/remote-store.js';
import type { DownloadOptions, ModelStore, StorageOption } from './types.js';

export const downloadOptionNames = [
  'hubUrl',
  'revision',
  'hubToken',
  'file',
  'sha256',
  'retries',
  'storage',
  'onWarning',
] as const satisfies readonly (keyof DownloadOptions)[];

/** @throws InvalidArgumentError */
export function checkDownloadOptions(options: DownloadOptions): void {
  const { hubUrl, revision, hubToken, file, sha256, retries, storage, onWarning } = options;
  if (hubUrl !== undefined && typeof hubUrl !== 'string' && !(hubUrl instanceof URL)) {
    refuse('hubUrl', hubUrl, 'a URL');
  }
  checkText('revision', revision, 'the name of a branch, tag or commit');
  checkText('hubToken', hubToken, 'an access token');
  checkText('file', file, 'the name of a .safetensors or .gguf file');
  if (file !== undefined && !isWeights(file)) {
    refuse('file', file, 'the name of a .safetensors or .gguf file');
  }
  if (sha256 !== undefined) checkDigests(sha256);
  if (retries !== undefined) checkInteger('retries', retries, 0, 100);
  if (storage !== undefined) checkStorage(storage);
  if (onWarning !== undefined && typeof onWarning !== 'function') {
    refuse('onWarning', onWarning, 'a function');
  }
}

/** The options as the Worker needs them. They must have been checked. */
export function downloadRequest(
  { hubToken, sha256 = {}, retries = 5, storage = 'auto' }: DownloadOptions,
  resolveDirectory: (path: string) => string,
): DownloadRequest {
  const digests = Object.entries(sha256).map(([name, digest]) => [name, digest.toLowerCase()]);
  return {
    hubToken,
    sha256: Object.fromEntries(digests),
    retries,
    storage: locateStorage(storage, resolveDirectory),
  };
}

function locateStorage(
  storage: StorageOption,
  resolveDirectory: (path: string) => string,
): StorageLocation {
  const plain = plainStorage(storage, resolveDirectory);
  if (plain) return plain;
  const { port1, port2 } = new MessageChannel();
  serveObject(port1, servedStore(storage as ModelStore));
  return { kind: 'store', port: port2 };
}

/** A storage that can be named; undefined for a `ModelStore`. */
export function plainStorage(
  storage: StorageOption,
  resolveDirectory: (path: string) => string,
): StorageLocation | undefined {
  if (typeof storage === 'string') return { kind: storage };
  if (!('directory' in storage)) return undefined;
  return { kind: 'directory', path: resolveDirectory(storage.directory) };
}

function checkText(name: string, value: unknown, wanted: string): void {
  if (value !== undefined && (typeof value !== 'string' || value === '')) {
    refuse(name, value, wanted);
  }
}

function checkDigests(digests: unknown): void {
  if (typeof digests !== 'object' || digests === null || Array.isArray(digests)) {
    refuse('sha256', digests, 'an object of digests by file name');
  }
  for (const [name, digest] of Object.entries(digests)) {
    if (typeof digest !== 'string' || !/^[0-9a-f]{64}$/i.test(digest)) {
      refuse(`sha256[${JSON.stringify(name)}]`, digest, '64 hexadecimal digits');
    }
  }
}

/** @throws InvalidArgumentError */
export function checkStorage(storage: unknown): void {
  if (['auto', 'opfs', 'cache-api', 'off'].includes(storage as string)) return;
  if (typeof storage === 'object' && storage !== null) {
    if ('directory' in storage && typeof storage.directory === 'string') return;
    const methods = ['get', 'put', 'delete', 'list'];
    if (methods.every(name => typeof (storage as Record<string, unknown>)[name] === 'function')) {
      return;
    }
  }
  refuse(
    'storage',
    storage,
    "'auto', 'opfs', 'cache-api', 'off', { directory } or a ModelStore with get, put, delete and list",
  );
}
