import type { ModelStore, StoredBytes } from '../source-types.js';

const directoryName = 'kvasm-models';

// What TypeScript's DOM library lacks, in part because it exists in Workers only.
interface SyncAccessHandle {
  truncate(size: number): void;
  write(bytes: Uint8Array, options: { at: number }): number;
  flush(): void;
  close(): void;
}
type FileHandle = FileSystemFileHandle & {
  createSyncAccessHandle?(): Promise<SyncAccessHandle>;
};

/** A directory of the Origin Private File System; undefined where there is none, as in some private windows. */
export async function openOpfs(): Promise<ModelStore | undefined> {
  try {
    const root = await navigator.storage.getDirectory();
    return new OpfsStore(await root.getDirectoryHandle(directoryName, { create: true }));
  } catch {
    return undefined;
  }
}

class OpfsStore implements ModelStore {
  readonly #directory: FileSystemDirectoryHandle;

  constructor(directory: FileSystemDirectoryHandle) {
    this.#directory = directory;
  }

  async get(name: string): Promise<Uint8Array | undefined> {
    try {
      const file = await (await this.#directory.getFileHandle(name)).getFile();
      return new Uint8Array(await file.arrayBuffer());
    } catch (error) {
      if (isMissing(error)) return undefined;
      throw error;
    }
  }

  async put(name: string, bytes: Uint8Array<ArrayBuffer>): Promise<void> {
    const handle: FileHandle = await this.#directory.getFileHandle(name, { create: true });
    // Quicker, and all that some browsers have; but not on a page's own thread.
    if (!handle.createSyncAccessHandle) {
      const stream = await handle.createWritable();
      await stream.write(bytes);
      await stream.close();
      return;
    }
    const file = await handle.createSyncAccessHandle();
    try {
      file.truncate(0);
      const written = file.write(bytes, { at: 0 });
      if (written < bytes.length) throw new DOMException('no room', 'QuotaExceededError');
      file.flush();
    } finally {
      file.close();
    }
  }

  async delete(name: string): Promise<void> {
    try {
      await this.#directory.removeEntry(name);
    } catch (error) {
      if (!isMissing(error)) throw error;
    }
  }

  async list(): Promise<StoredBytes[]> {
    const found: StoredBytes[] = [];
    for await (const handle of this.#directory.values()) {
      if (handle.kind !== 'file') continue;
      try {
        const { size } = await (handle as FileSystemFileHandle).getFile();
        found.push({ name: handle.name, size });
      } catch (error) {
        // Deleted meanwhile.
        if (!isMissing(error)) throw error;
      }
    }
    return found;
  }
}

/** A file that is written to while it is read counts as not there yet. */
function isMissing(error: unknown): boolean {
  const names = ['NotFoundError', 'NotReadableError'];
  return error instanceof DOMException && names.includes(error.name);
}
