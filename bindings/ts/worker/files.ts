import { errorFor, type KvasmError } from '../errors.js';
import { describeThrown, type FileLocation } from '../protocol.js';
import { type RemoteStream, remoteObject } from '../remote.js';
import { headBytes, looksLike } from './download/sniff.js';

export interface OpenFile {
  /** Where it is, for messages. */
  readonly label: string;
  /** In bytes, as its keeper says. The chunks may come to another number. */
  readonly size: number | undefined;
  /** To be read once. Errors are KvasmErrors, or a ReadAgain. */
  readonly chunks: AsyncIterable<Uint8Array>;
  /**
   * The bytes have turned out to be of no use: forgets what is kept of them.
   * @returns Whether they came from where they were kept, so that another try may yield others.
   */
  forget(): Promise<boolean>;
}

/** A file that is not there, which is no error yet. */
export interface MissingFile {
  readonly label: string;
  readonly missing: string;
}

/** A file's bytes are not those that were read before: they have to be read anew from the first. */
export class ReadAgain extends Error {
  /** What to throw when there is no point in that. */
  readonly failure: KvasmError;

  constructor(failure: KvasmError) {
    super(failure.message);
    this.failure = failure;
  }
}

/** What a file is opened from, but for those at URLs. */
export type LocalFileLocation = Exclude<FileLocation, { kind: 'url' }>;

/** @throws ModelError `load-failed` when it cannot be told whether the file is there, or cannot be read. */
export type FileOpener = (
  name: string,
  location: LocalFileLocation,
) => Promise<OpenFile | MissingFile>;

/** Opens what browsers and Node have in common. */
export const openPortable: FileOpener = async (name, location) => {
  switch (location.kind) {
    case 'blob':
      return openBlob(name, location.blob);
    case 'bytes':
      return localFile(name, location.bytes.length, only(location.bytes));
    case 'stream':
      return localFile(name, location.size, readRemote(location.port, name));
    case 'path':
      throw loadFailed(location.path, 'paths can be read in Node only');
  }
};

export function loadFailed(label: string, reason: string, cause?: unknown): KvasmError {
  return errorFor('load-failed', `${label}: ${reason}.`, cause === undefined ? {} : { cause });
}

/** A file of which nothing is kept elsewhere. */
export function localFile(
  label: string,
  size: number | undefined,
  chunks: AsyncIterable<Uint8Array>,
): OpenFile {
  return { label, size, chunks: refuseStandIns(chunks, label), forget: async () => false };
}

/** The same chunks, unless the first bytes are those of a page or a pointer. */
export async function* refuseStandIns(
  chunks: AsyncIterable<Uint8Array>,
  label: string,
): AsyncGenerator<Uint8Array> {
  let head: Uint8Array | undefined = new Uint8Array(0);
  for await (const chunk of chunks) {
    if (!head) {
      yield chunk;
      continue;
    }
    head = concat(head, chunk);
    if (head.length < headBytes) continue;
    const whole = head;
    head = undefined;
    yield checked(whole, label);
  }
  if (head && head.length > 0) yield checked(head, label);
}

function checked(head: Uint8Array, label: string): Uint8Array {
  const instead = looksLike(head);
  if (instead !== undefined) throw loadFailed(label, instead);
  return head;
}

function concat(a: Uint8Array, b: Uint8Array): Uint8Array {
  if (a.length === 0) return b;
  const both = new Uint8Array(a.length + b.length);
  both.set(a);
  both.set(b, a.length);
  return both;
}

function openBlob(name: string, blob: Blob): OpenFile {
  const label = 'name' in blob && typeof blob.name === 'string' ? blob.name : name;
  return localFile(label, blob.size, readStream(blob.stream(), label));
}

async function* readStream(
  stream: ReadableStream<Uint8Array>,
  label: string,
): AsyncGenerator<Uint8Array> {
  // Not every browser iterates over streams.
  const reader = stream.getReader();
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      yield value;
    }
  } catch (cause) {
    throw loadFailed(label, `reading stopped (${describeThrown(cause)})`, cause);
  } finally {
    reader.cancel().catch(() => {});
  }
}

async function* readRemote(port: MessagePort, label: string): AsyncGenerator<Uint8Array> {
  const stream = remoteObject<RemoteStream>(port, ['read', 'cancel']);
  try {
    for (;;) {
      const chunk = await stream.read();
      if (!chunk) return;
      yield chunk;
    }
  } catch (cause) {
    throw loadFailed(label, `reading stopped (${describeThrown(cause)})`, cause);
  } finally {
    stream.cancel().catch(() => {});
  }
}

async function* only(...chunks: Uint8Array[]): AsyncGenerator<Uint8Array> {
  yield* chunks;
}
