import { errorFor, InvalidArgumentError } from '../errors.js';
import { chooseWeights, isGguf, isIndex, type ModelFileName } from '../model-files.js';
import {
  type BuildOptions,
  type CacheOptions,
  type DownloadRequest,
  describeThrown,
  type LoadRequest,
  type ModelLocation,
  type StorageLocation,
} from '../protocol.js';
import { FileCache, type FileCacheOptions } from '../storage/file-cache.js';
import type { Tokenizer } from '../tokenizer/tokenizer.js';
import type { EngineInfo, GenerationDefaults, LoadWarning, ModelStore } from '../types.js';
import {
  type WasmEngine,
  type WasmEngineOptions,
  type WasmLoader,
  type WasmModule,
  wasmKvDtypes,
  wasmWeightDtypes,
} from '../wasm-module.js';
import type { Build } from './build.js';
import { Network, type NetworkOptions } from './download/network.js';
import type { Hash } from './download/sha256.js';
import type { FileOpener } from './files.js';
import { readGenerationConfig } from './generation-config.js';
import { ggufTokenizer, loadTokenizer } from './load-tokenizer.js';
import { loadWeights } from './load-weights.js';
import { checkStatus } from './locate.js';
import { type ModelFolder, openModelFolder } from './model-folder.js';
import { LoadTracker, type Report } from './progress.js';
import { type Reader, readText, requireFile, withFiles } from './read-file.js';

export { checkStatus } from './locate.js';

export interface WorkerEnvironment {
  createBuild(options: BuildOptions): Promise<Build>;
  readonly openFile: FileOpener;
  readonly listDirectory: (path: string) => Promise<readonly string[]>;
  readonly openStorage: (location: StorageLocation) => Promise<ModelStore | undefined>;
  readonly lock: FileCacheOptions['lock'];
  /** Of `FileCacheOptions`. */
  readonly pieceBytes?: number;
  readonly makeHash: () => Hash;
  readonly network: Omit<NetworkOptions, 'retries'>;
}

export interface LoadedModel {
  readonly module: WasmModule;
  /** As that of Build. */
  readonly died: Promise<string>;
  readonly engine: WasmEngine;
  readonly tokenizer: Tokenizer;
  readonly info: EngineInfo;
}

/** Whom a load tells how it goes. */
export interface LoadListener {
  readonly progress: Report;
  readonly warning: (warning: LoadWarning) => void;
}

/** Whatever this throws that is no KvasmError comes from WebAssembly, which is then beyond use. */
export async function loadModel(
  request: LoadRequest,
  environment: WorkerEnvironment,
  listener: LoadListener,
): Promise<LoadedModel> {
  const tracker = new LoadTracker(listener.progress);
  const makeReader = async (): Promise<Reader> => {
    const folder = await openFolder(request, environment, listener);
    expectFiles(tracker, folder, request.model);
    return { folder, tracker, mostAgain: 1 + request.download.retries };
  };
  // Compiling and fetching take their time together. Whichever fails first ends the load.
  const [build, reader] = await Promise.all([environment.createBuild(request.build), makeReader()]);
  const { module, died } = build;
  if (build.warning !== undefined) {
    listener.warning({ code: 'fewer-threads', message: build.warning });
  }
  const name = weightsName(reader.folder, request.model);
  const files = { module, reader, name, cache: request.cache };
  const { loader, tokenizer, defaults, byteCount } =
    name !== undefined && isGguf(name) ? await loadGguf(files) : await loadSafetensors(files);
  await reader.folder.loaded?.();
  const engine = loader.takeEngine();
  loader.delete();
  const info = describeEngine(engine, tokenizer, build, request.cache, defaults);
  tracker.ready(byteCount);
  return { module, died, engine, tokenizer, info };
}

interface ModelFiles {
  readonly module: WasmModule;
  readonly reader: Reader;
  /** The weights', or undefined where it is to be found out. */
  readonly name: string | undefined;
  readonly cache: CacheOptions;
}

/** What takes most of a load. The loader holds the engine. */
interface Loaded {
  readonly loader: WasmLoader;
  readonly tokenizer: Tokenizer;
  readonly defaults: GenerationDefaults;
  readonly byteCount: number;
}

async function loadSafetensors({ module, reader, name, cache }: ModelFiles): Promise<Loaded> {
  let ready: WasmLoader | undefined;
  // Not deleted on an error: the client then ends the Worker.
  const config = await withFiles(reader, async opened => {
    const file = opened(await requireFile(reader.folder, 'config.json'));
    const text = await readText(file, 'config', 'config.json', reader.tracker);
    ready?.delete();
    ready = new module.Loader(text, engineOptions(cache));
    checkStatus(ready.status(), file.label);
    checkContextLength(ready, cache);
    return text;
  });
  const tokenizer = await loadTokenizer(reader);
  const defaults = await loadDefaults(reader);
  const weights = await loadWeights(reader, {
    name,
    module,
    makeLoader() {
      const loader = ready ?? new module.Loader(config, engineOptions(cache));
      ready = undefined;
      return loader;
    },
  });
  return { ...weights, tokenizer, defaults };
}

/** The config and the tokenizer are in the same file, in front of the weights. */
async function loadGguf({ module, reader, name, cache }: ModelFiles): Promise<Loaded> {
  let tokenizer: Tokenizer | undefined;
  const weights = await loadWeights(reader, {
    name,
    module,
    makeLoader() {
      const loader = new module.Loader('', engineOptions(cache));
      checkStatus(loader.status());
      return loader;
    },
    onHeader(loader, label) {
      checkContextLength(loader, cache);
      tokenizer = ggufTokenizer(loader, label);
    },
  });
  tokenizer ??= await loadTokenizer(reader);
  return { ...weights, tokenizer, defaults: {} };
}

const generationConfigName = 'generation_config.json' satisfies ModelFileName;

/** @throws ModelError `invalid-config` for a file that is there, and no good. */
function loadDefaults(reader: Reader): Promise<GenerationDefaults> {
  const { folder, tracker } = reader;
  return withFiles(reader, async opened => {
    const file = await folder.find(generationConfigName);
    if ('missing' in file) return {};
    const text = await readText(opened(file), 'config', generationConfigName, tracker);
    let config: unknown;
    try {
      config = JSON.parse(text);
    } catch (cause) {
      throw errorFor('invalid-config', `${file.label}: ${describeThrown(cause)}`);
    }
    if (typeof config === 'object' && config !== null && !Array.isArray(config)) {
      return readGenerationConfig(config as Record<string, unknown>, file.label);
    }
    throw errorFor('invalid-config', `${file.label}: it is no JSON object`);
  });
}

/** Undefined where only asking for it tells. */
function weightsName({ names, where }: ModelFolder, { file }: ModelLocation): string | undefined {
  if (file !== undefined || names === undefined) return file;
  return chooseWeights(names, where);
}

/** What will be read, as far as the folder's list tells. */
function expectFiles(tracker: LoadTracker, folder: ModelFolder, model: ModelLocation): void {
  const { names } = folder;
  if (!names) return;
  const weights = weightsName(folder, model) ?? '';
  const tokenizer = names.includes('tokenizer.json')
    ? ['tokenizer.json']
    : ['vocab.json', 'merges.txt'];
  const optional = [generationConfigName].filter(name => names.includes(name));
  const beside = isGguf(weights) ? [] : ['config.json', ...tokenizer, ...optional];
  const files = [...beside, weights];
  const sizes = files.map(name => [name, folder.sizeOf(name)] as const);
  // The index will tell which files there are besides.
  tracker.expect(isIndex(weights) ? [...sizes, ['shards', undefined]] : sizes);
}

async function openFolder(
  { model, download }: LoadRequest,
  environment: WorkerEnvironment,
  listener: LoadListener,
): Promise<ModelFolder> {
  const { openFile, listDirectory, makeHash } = environment;
  const { retries } = download;
  const network = new Network({ ...environment.network, retries });
  const cache = await openCache(download, environment, listener);
  const downloads = { network, cache, makeHash };
  return openModelFolder(model, { download, downloads, openFile, listDirectory });
}

async function openCache(
  { storage }: DownloadRequest,
  { openStorage, lock, pieceBytes }: WorkerEnvironment,
  { warning }: LoadListener,
): Promise<FileCache | undefined> {
  const store = await openStorage(storage);
  if (store) {
    return new FileCache({ store, lock, warn: warning, ...(pieceBytes && { pieceBytes }) });
  }
  if (storage.kind === 'opfs' || storage.kind === 'cache-api') {
    const message = `There is no storage '${storage.kind}' here, so that downloads are not kept.`;
    warning({ code: 'storage-failed', message });
  }
  return undefined;
}

function engineOptions(options: CacheOptions): WasmEngineOptions {
  const { contextLength = 0, window = 0, kvBytes = 0, prefixCache, prefillChunk } = options;
  return {
    dtype: wasmWeightDtypes[options.dtype],
    contextLength,
    window,
    kvDtype: wasmKvDtypes[options.kvDtype],
    kvBytes,
    prefixCache,
    prefillChunk,
  };
}

/** Early, from the config that the loader has read; the engine itself is there only after all of the weights. */
function checkContextLength(loader: WasmLoader, { contextLength }: CacheOptions): void {
  const positions = loader.config()?.nPositions;
  if (contextLength !== undefined && positions !== undefined && contextLength > positions) {
    throw new InvalidArgumentError(
      `contextLength must be an integer from 1 to ${positions}, the model's n_positions, ` +
        `not ${contextLength}.`,
    );
  }
}

function describeEngine(
  engine: WasmEngine,
  tokenizer: Tokenizer,
  { variant, variantReason, threads, threadsReason }: Build,
  options: CacheOptions,
  { stopTokens = [], ...defaults }: GenerationDefaults,
): EngineInfo {
  const { eosTokenId, ...config } = engine.config();
  // Small models are often saved with ids of the full vocabulary, which they do not have.
  const isKnown = (id: number | undefined) => id !== undefined && id >= 0 && id < config.vocabSize;
  const endOfText = [eosTokenId, tokenizer.endOfText].find(isKnown);
  const knownStops = stopTokens.filter(isKnown);
  const { contextLength = config.nPositions, window, kvDtype, prefixCache, prefillChunk } = options;
  return {
    config,
    endOfText,
    vocabSize: tokenizer.vocabSize,
    defaults: knownStops.length > 0 ? { ...defaults, stopTokens: knownStops } : defaults,
    variant,
    variantReason,
    threads,
    threadsReason,
    dtype: options.dtype,
    contextLength,
    // As wide as the context, it drops nothing.
    window: window !== undefined && window < contextLength ? window : undefined,
    kvDtype,
    kvBytes: engine.memory().kvReserved,
    prefixCache,
    prefillChunk: Math.min(prefillChunk, contextLength),
  };
}
