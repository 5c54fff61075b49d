import { errorFor, type KvasmError } from '../errors.js';
import { describeThrown, type FileLocation, type ModelFileName } from '../protocol.js';

export interface OpenFile {
  /** Where it is, for messages. */
  readonly label: string;
  /** In bytes, as its keeper says. The chunks may come to another number. */
  readonly size: number | undefined;
  /** To be read once. Errors are KvasmErrors. */
  readonly chunks: AsyncIterable<Uint8Array>;
}

/** A file that is not there, which is no error yet. */
export interface MissingFile {
  readonly label: string;
  readonly missing: string;
}

/** @throws ModelError `load-failed` when it cannot be told whether the file is there, or cannot be read. */
export type FileOpener = (
  name: ModelFileName,
  location: FileLocation,
) => Promise<OpenFile | MissingFile>;

/** Opens what browsers and Node have in common. */
export const openPortable: FileOpener = async (name, location) => {
  switch (location.kind) {
    case 'url':
      return openUrl(location.url);
    case 'blob':
      return openBlob(name, location.blob);
    case 'bytes':
      return { label: name, size: location.bytes.length, chunks: only(location.bytes) };
    case 'path':
      throw loadFailed(location.path, 'paths can be read in Node only');
  }
};

export function loadFailed(label: string, reason: string, cause?: unknown): KvasmError {
  return errorFor('load-failed', `${label}: ${reason}.`, cause === undefined ? {} : { cause });
}

async function openUrl(url: string): Promise<OpenFile | MissingFile> {
  let response: Response;
  try {
    response = await fetch(url);
  } catch (cause) {
    throw loadFailed(url, `cannot be fetched (${describeThrown(cause)})`, cause);
  }
  const status = `HTTP status ${response.status}${response.statusText && ` ${response.statusText}`}`;
  if (!response.ok) {
    await response.body?.cancel();
    if (response.status === 404 || response.status === 410) return { label: url, missing: status };
    throw loadFailed(url, `cannot be fetched (${status})`);
  }
  // Servers of one-page sites answer so for each file that they do not have.
  if (/^\s*text\/html\b/i.test(response.headers.get('content-type') ?? '')) {
    await response.body?.cancel();
    return { label: url, missing: `the server answers with an HTML page (${status})` };
  }
  const body = response.body;
  return { label: url, size: announcedSize(response), chunks: body ? read(body, url) : only() };
}

/** The length of what `fetch` yields; the header of a compressed answer tells of the compressed bytes. */
function announcedSize({ headers }: Response): number | undefined {
  const length = headers.get('content-length');
  if (length === null || headers.has('content-encoding')) return undefined;
  const size = Number(length);
  return Number.isSafeInteger(size) && size > 0 ? size : undefined;
}

function openBlob(name: ModelFileName, blob: Blob): OpenFile {
  const label = 'name' in blob && typeof blob.name === 'string' ? blob.name : name;
  return { label, size: blob.size, chunks: read(blob.stream(), label) };
}

async function* read(
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

async function* only(...chunks: Uint8Array[]): AsyncGenerator<Uint8Array> {
  yield* chunks;
}
