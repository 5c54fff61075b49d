import type { ModelStore } from '../source-types.js';
import { keyOfName, parseHeader } from './entry-names.js';
import { listName } from './file-cache.js';

/** A file that was downloaded, and is kept for the next load. */
export interface KeptFile {
  /** The hub id, or the URL of the folder, that it was loaded from first. */
  readonly model: string;
  /** Its name. */
  readonly file: string;
  /** The bytes that it takes in the storage. */
  readonly bytes: number;
  /** Its length, or undefined while that is not known. */
  readonly size: number | undefined;
  /** False for the beginning of a download that was given up, which the next load goes on with. */
  readonly complete: boolean;
  /** When the download began. */
  readonly savedAt: Date;
}

/** What loads have kept in a storage. All of its methods reject when the storage fails. */
export class ModelCache {
  readonly #open: () => Promise<ModelStore | undefined>;

  /** @internal */
  constructor(open: () => Promise<ModelStore | undefined>) {
    this.#open = open;
  }

  /** The files, sorted by model and name; none where there is no storage. */
  async list(): Promise<KeptFile[]> {
    const files: KeptFile[] = [];
    for (const entry of (await this.#entries()).values()) {
      const { header, bytes } = entry;
      if (!header || header.file === listName) continue;
      const { model, file, size, complete, savedAt } = header;
      files.push({ model, file, bytes, size, complete, savedAt: new Date(savedAt) });
    }
    const order = (a: string, b: string) => (a < b ? -1 : a > b ? 1 : 0);
    return files.sort((a, b) => order(a.model, b.model) || order(a.file, b.file));
  }

  /** The bytes that everything takes, remains of broken downloads included. */
  async size(): Promise<number> {
    let sum = 0;
    for (const { bytes } of (await this.#entries()).values()) sum += bytes;
    return sum;
  }

  /**
   * Deletes the files of a model, or one of them. A load that reads them meanwhile fetches them again.
   * @param model As `list` tells it.
   * @returns The bytes that are free now.
   */
  delete(model: string, file?: string): Promise<number> {
    return this.#delete(
      header => header?.model === model && (file === undefined || header.file === file),
    );
  }

  /**
   * Deletes everything.
   * @returns The bytes that are free now.
   */
  clear(): Promise<number> {
    return this.#delete(() => true);
  }

  async #delete(isMeant: (header: Entry['header']) => boolean): Promise<number> {
    const store = await this.#open();
    let freed = 0;
    for (const { header, names, bytes } of (await this.#entries()).values()) {
      if (!isMeant(header)) continue;
      // The header comes first, so that what is left of a deletion that is cut off is no file.
      for (const name of names.sort((a, b) => Number(isHeader(b)) - Number(isHeader(a)))) {
        await store?.delete(name);
      }
      freed += bytes;
    }
    return freed;
  }

  async #entries(): Promise<Map<string, Entry>> {
    const store = await this.#open();
    const entries = new Map<string, Entry>();
    for (const { name, size } of (await store?.list()) ?? []) {
      const key = keyOfName(name);
      const entry: Entry = entries.get(key) ?? { names: [], bytes: 0, header: undefined };
      entry.names.push(name);
      entry.bytes += size;
      if (isHeader(name)) entry.header = parseHeader((await store?.get(name)) ?? new Uint8Array(0));
      entries.set(key, entry);
    }
    return entries;
  }
}

interface Entry {
  readonly names: string[];
  bytes: number;
  header: ReturnType<typeof parseHeader>;
}

function isHeader(name: string): boolean {
  return name.endsWith('.json');
}
