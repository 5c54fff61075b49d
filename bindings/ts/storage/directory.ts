import { randomUUID } from 'node:crypto';
import { mkdir, readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

import type { ModelStore, StoredBytes } from '../source-types.js';

/** A directory of Node's file system, made with the first `put`. */
export function openDirectory(path: string): ModelStore {
  return new DirectoryStore(path);
}

class DirectoryStore implements ModelStore {
  readonly #path: string;

  constructor(path: string) {
    this.#path = path;
  }

  get(name: string): Promise<Uint8Array | undefined> {
    return ifThere(readFile(join(this.#path, name)));
  }

  async put(name: string, bytes: Uint8Array<ArrayBuffer>): Promise<void> {
    await mkdir(this.#path, { recursive: true });
    // Under another name first, so that no reader sees a part, and no other writer writes into it.
    const aside = join(this.#path, `${name}.${randomUUID()}.part`);
    try {
      await writeFile(aside, bytes);
      await rename(aside, join(this.#path, name));
    } catch (error) {
      await rm(aside, { force: true });
      throw isFull(error) ? new DOMException('The disk is full.', 'QuotaExceededError') : error;
    }
  }

  async delete(name: string): Promise<void> {
    await rm(join(this.#path, name), { force: true });
  }

  async list(): Promise<StoredBytes[]> {
    const found: StoredBytes[] = [];
    for (const name of (await ifThere(readdir(this.#path))) ?? []) {
      const file = await ifThere(stat(join(this.#path, name)));
      if (file?.isFile()) found.push({ name, size: file.size });
    }
    return found;
  }
}

async function ifThere<T>(promise: Promise<T>): Promise<T | undefined> {
  try {
    return await promise;
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return undefined;
    throw error;
  }
}

function isFull(error: unknown): boolean {
  return hasCode(error, 'ENOSPC') || hasCode(error, 'EDQUOT');
}

function hasCode(error: unknown, code: string): boolean {
  return error instanceof Error && 'code' in error && error.code === code;
}
