import { open, readdir } from 'node:fs/promises';

import { describeThrown } from '../protocol.js';
import {
  type FileOpener,
  loadFailed,
  localFile,
  type MissingFile,
  type OpenFile,
  openPortable,
} from './files.js';

const chunkBytes = 1 << 20;

/** Opens paths too. */
export const openInNode: FileOpener = async (name, location) =>
  location.kind === 'path' ? openPath(location.path) : openPortable(name, location);

/** @throws ModelError `load-failed` */
export async function listDirectory(path: string): Promise<readonly string[]> {
  try {
    return await readdir(path);
  } catch (cause) {
    throw loadFailed(path, `cannot be read (${describeThrown(cause)})`, cause);
  }
}

async function openPath(path: string): Promise<OpenFile | MissingFile> {
  try {
    const file = await open(path);
    const { size } = await file.stat();
    const stream = file.createReadStream({ highWaterMark: chunkBytes });
    return localFile(path, size, wrapErrors(stream, path));
  } catch (cause) {
    if (hasCode(cause, 'ENOENT')) return { label: path, missing: 'no such file' };
    throw loadFailed(path, `cannot be opened (${describeThrown(cause)})`, cause);
  }
}

async function* wrapErrors(
  chunks: AsyncIterable<Uint8Array>,
  path: string,
): AsyncGenerator<Uint8Array> {
  try {
    yield* chunks;
  } catch (cause) {
    throw loadFailed(path, `cannot be read (${describeThrown(cause)})`, cause);
  }
}

function hasCode(thrown: unknown, code: string): boolean {
  return thrown instanceof Error && 'code' in thrown && thrown.code === code;
}
