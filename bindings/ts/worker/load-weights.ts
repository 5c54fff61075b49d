import { isIndex } from '../model-files.js';
import type { WasmLoader, WasmModule } from '../wasm-module.js';
import { loadFailed, type OpenFile } from './files.js';
import { checkStatus } from './locate.js';
import { type Reader, readText, requireFile, withFiles } from './read-file.js';

const single = 'model.safetensors';
const index = 'model.safetensors.index.json';

export interface WeightsRequest {
  /** The weights' name, or undefined where it is to be found out. */
  readonly name: string | undefined;
  readonly module: WasmModule;
  /** A loader that has taken the config. */
  readonly makeLoader: () => WasmLoader;
  /** Called once the loader has the header of a file, which has this label. */
  readonly onHeader?: (loader: WasmLoader, label: string) => void;
}

/**
 * Streams the weights into WebAssembly. At no time is more of a file in JavaScript's memory than a few pieces of it.
 * @returns The loader, which holds the engine, and the bytes that were read.
 */
export async function loadWeights(
  reader: Reader,
  { name, module, makeLoader, onHeader }: WeightsRequest,
): Promise<{ readonly loader: WasmLoader; readonly byteCount: number }> {
  let loader: WasmLoader | undefined;
  return withFiles(reader, async opened => {
    // What an earlier try has brought makes room for this one.
    loader?.delete();
    loader = undefined;
    const fresh = makeLoader();
    loader = fresh;
    const { file, fileName } = await findWeights(reader, name);
    const stream = new WeightsStream(reader, module, fresh, onHeader);
    if (isIndex(fileName)) {
      await stream.shards(opened(file), fileName, opened);
    } else {
      reader.tracker.expect([]);
      await stream.file(opened(file), fileName);
    }
    const status = fresh.finish();
    // The options turn out not to fit only now; the file is not to blame.
    checkStatus(status, status.code === 'invalid-argument' ? undefined : file.label);
    return { loader: fresh, byteCount: stream.byteCount };
  });
}

/** One file is more common than shards, so that it is asked for first. */
async function findWeights(
  { folder }: Reader,
  name: string | undefined,
): Promise<{ readonly file: OpenFile; readonly fileName: string }> {
  if (name !== undefined) return { file: await requireFile(folder, name), fileName: name };
  const one = await folder.find(single);
  if (!('missing' in one)) return { file: one, fileName: single };
  const many = await folder.find(index);
  if (!('missing' in many)) return { file: many, fileName: index };
  throw loadFailed(
    folder.where,
    `there is neither ${one.label} (${one.missing}) nor ${many.label} (${many.missing})`,
  );
}

class WeightsStream {
  readonly #reader: Reader;
  readonly #module: WasmModule;
  readonly #loader: WasmLoader;
  readonly #onHeader: WeightsRequest['onHeader'];
  byteCount = 0;

  constructor(
    reader: Reader,
    module: WasmModule,
    loader: WasmLoader,
    onHeader: WeightsRequest['onHeader'],
  ) {
    this.#reader = reader;
    this.#module = module;
    this.#loader = loader;
    this.#onHeader = onHeader;
  }

  /** @param name The index's, which may be in a folder. */
  async shards(
    indexFile: OpenFile,
    name: string,
    opened: (file: OpenFile) => OpenFile,
  ): Promise<void> {
    const { folder, tracker } = this.#reader;
    const text = await readText(indexFile, 'weights', name, tracker);
    checkStatus(this.#loader.setIndex(text), indexFile.label);
    const beside = name.slice(0, name.lastIndexOf('/') + 1);
    const shards = this.#loader.shards().map(shard => beside + shard);
    tracker.expect(shards.map(shard => [shard, folder.sizeOf(shard)] as const));
    for (const shard of shards) {
      const file = await folder.find(shard);
      if ('missing' in file) {
        const reason = `is not there (${file.missing}), but ${indexFile.label} names it`;
        throw loadFailed(file.label, reason);
      }
      checkStatus(this.#loader.nextFile(shard));
      await this.file(opened(file), shard);
    }
  }

  async file(file: OpenFile, name: string): Promise<void> {
    const { tracker } = this.#reader;
    const module = this.#module;
    const loader = this.#loader;
    const progress = tracker.file('weights', name, file.size);
    let announced = false;
    for await (const chunk of file.chunks) {
      for (let start = 0; start < chunk.length; ) {
        const piece = chunk.subarray(start, start + loader.stagingSize());
        // HEAPU8 anew each time: what consume allocates may have replaced it.
        module.HEAPU8.set(piece, loader.stagingAddress());
        checkStatus(loader.consume(piece.length), file.label);
        start += piece.length;
      }
      this.byteCount += chunk.length;
      if (!announced && loader.fileBytes() > 0) {
        announced = true;
        progress.expect(loader.fileBytes());
        this.#onHeader?.(loader, file.label);
      }
      progress.add(chunk.length);
    }
    progress.finish();
  }
}
