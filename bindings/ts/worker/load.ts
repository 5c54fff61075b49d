import { errorFor, InvalidArgumentError, KvasmError, type KvasmErrorCode } from '../errors.js';
import {
  type CacheOptions,
  describeThrown,
  type LoadRequest,
  type ModelFileName,
  type ModelLocations,
  modelFileNames,
} from '../protocol.js';
import { Tokenizer } from '../tokenizer/tokenizer.js';
import type { EngineInfo, LoadProgress } from '../types.js';
import {
  type WasmEngine,
  type WasmEngineOptions,
  type WasmLoader,
  type WasmModule,
  type WasmStatus,
  wasmKvDtypes,
} from '../wasm-module.js';
import { type FileOpener, loadFailed, type MissingFile, type OpenFile } from './files.js';
import { FileProgress } from './progress.js';

export interface WorkerEnvironment {
  /** The name of the WebAssembly build. */
  readonly variant: string;
  createModule(wasmUrl: string | undefined): Promise<WasmModule>;
  readonly openFile: FileOpener;
}

export interface LoadedModel {
  readonly module: WasmModule;
  readonly engine: WasmEngine;
  readonly tokenizer: Tokenizer;
  readonly info: EngineInfo;
}

type Report = (progress: LoadProgress) => void;

/** Throws the error that a status stands for, if it stands for one. */
export function checkStatus({ code, message }: WasmStatus, label?: string): void {
  if (code === '') return;
  // The codes of the two sides are one list.
  const located = label === undefined ? message : locate(label, message);
  throw errorFor(code as KvasmErrorCode, located);
}

/** Says where the file is that a message is about, in place of its name. */
function locate(label: string, message: string): string {
  const name = modelFileNames.find(candidate => message.startsWith(`${candidate}: `));
  return `${label}: ${name === undefined ? message : message.slice(name.length + 2)}`;
}

/** Whatever this throws that is no KvasmError comes from WebAssembly, which is then beyond use. */
export async function loadModel(
  request: LoadRequest,
  environment: WorkerEnvironment,
  report: Report,
): Promise<LoadedModel> {
  const files = new FileSet(request.files, environment.openFile);
  // Compiling and fetching take their time together. Whichever fails first ends the load.
  const [module, configFile] = await Promise.all([
    environment.createModule(request.wasmUrl),
    files.require('config.json'),
  ]);
  const config = await readText(configFile, 'config', report);
  checkMarkup(configFile, config);
  // Not deleted on an error: the client then ends the Worker.
  const loader = new module.Loader(config, engineOptions(request.cache));
  checkStatus(loader.status(), configFile.label);
  checkContextLength(config, request.cache.contextLength);
  const tokenizer = await loadTokenizer(files, report);
  const weights = await files.require('model.safetensors');
  const byteCount = await streamWeights(weights, module, loader, report);
  const engine = loader.takeEngine();
  loader.delete();
  const info = describeEngine(engine, tokenizer, environment.variant, request.cache);
  report({ phase: 'ready', loaded: byteCount, total: byteCount });
  return { module, engine, tokenizer, info };
}

function engineOptions(options: CacheOptions): WasmEngineOptions {
  const {
    contextLength = 0,
    window = 0,
    kvDtype,
    kvBytes = 0,
    prefixCache,
    prefillChunk,
  } = options;
  const dtype = wasmKvDtypes[kvDtype];
  return { contextLength, window, kvDtype: dtype, kvBytes, prefixCache, prefillChunk };
}

class FileSet {
  readonly #locations: ModelLocations;
  readonly #open: FileOpener;

  constructor(locations: ModelLocations, open: FileOpener) {
    this.#locations = locations;
    this.#open = open;
  }

  async find(name: ModelFileName): Promise<OpenFile | MissingFile> {
    const location = this.#locations[name];
    return location ? this.#open(name, location) : { label: name, missing: 'not given' };
  }

  async require(name: ModelFileName): Promise<OpenFile> {
    const file = await this.find(name);
    if ('missing' in file) throw loadFailed(file.label, `is not there (${file.missing})`);
    return file;
  }
}

async function readText(
  file: OpenFile,
  phase: LoadProgress['phase'],
  report: Report,
): Promise<string> {
  const progress = new FileProgress(phase, file.size, report);
  const decoder = new TextDecoder();
  let text = '';
  for await (const chunk of file.chunks) {
    text += decoder.decode(chunk, { stream: true });
    progress.add(chunk.length);
  }
  progress.finish();
  return text + decoder.decode();
}

function checkMarkup({ label }: OpenFile, text: string): void {
  if (looksLikeMarkup(text)) throw loadFailed(label, 'is an HTML page, not a file of a model');
}

function looksLikeMarkup(text: string): boolean {
  return text.trimStart().startsWith('<');
}

/** Early, from the config that the loader has accepted; the engine itself is there only after all of the weights. */
function checkContextLength(config: string, contextLength: number | undefined): void {
  if (contextLength === undefined) return;
  const { n_positions: positions } = JSON.parse(config) as { n_positions?: unknown };
  if (typeof positions === 'number' && contextLength > positions) {
    throw new InvalidArgumentError(
      `contextLength must be an integer from 1 to ${positions}, the model's n_positions, ` +
        `not ${contextLength}.`,
    );
  }
}

async function loadTokenizer(files: FileSet, report: Report): Promise<Tokenizer> {
  const single = await files.find('tokenizer.json');
  if (!('missing' in single)) {
    const text = await readText(single, 'tokenizer', report);
    checkMarkup(single, text);
    return makeTokenizer(single.label, () => Tokenizer.fromTokenizerJson(text));
  }
  const vocab = await files.find('vocab.json');
  if ('missing' in vocab) {
    throw errorFor(
      'invalid-tokenizer',
      `The model has neither ${single.label} (${single.missing}) nor ${vocab.label} (${vocab.missing}).`,
    );
  }
  const vocabText = await readText(vocab, 'tokenizer', report);
  checkMarkup(vocab, vocabText);
  const merges = await files.require('merges.txt');
  const mergesText = await readText(merges, 'tokenizer', report);
  return makeTokenizer(vocab.label, () => Tokenizer.fromVocabAndMerges(vocabText, mergesText));
}

function makeTokenizer(label: string, make: () => Tokenizer): Tokenizer {
  try {
    return make();
  } catch (error) {
    if (error instanceof KvasmError) throw errorFor(error.code, locate(label, error.message));
    throw errorFor('invalid-tokenizer', `${label}: ${describeThrown(error)}`);
  }
}

/** Returns the file's length. At no time is more of it in memory than a chunk and the staging buffer. */
async function streamWeights(
  file: OpenFile,
  module: WasmModule,
  loader: WasmLoader,
  report: Report,
): Promise<number> {
  const progress = new FileProgress('weights', file.size, report);
  let head = '';
  let total = 0;
  let announced = false;
  try {
    for await (const chunk of file.chunks) {
      if (head.length < 64) head += String.fromCharCode(...chunk.subarray(0, 64));
      for (let start = 0; start < chunk.length; ) {
        const piece = chunk.subarray(start, start + loader.stagingSize());
        // HEAPU8 anew each time: what consume allocates may have replaced it.
        module.HEAPU8.set(piece, loader.stagingAddress());
        checkStatus(loader.consume(piece.length), file.label);
        start += piece.length;
      }
      total += chunk.length;
      if (!announced && loader.fileBytes() > 0) {
        announced = true;
        progress.expect(loader.fileBytes());
      }
      progress.add(chunk.length);
    }
    const status = loader.finish();
    // The options turn out not to fit only now; the file is not to blame.
    checkStatus(status, status.code === 'invalid-argument' ? undefined : file.label);
  } catch (error) {
    // The eight bytes that a page begins with make no length of a header, so it always fails, as something obscure.
    if (error instanceof KvasmError && error.code !== 'load-failed' && looksLikeMarkup(head)) {
      throw loadFailed(file.label, 'is an HTML page, not a file of a model', error);
    }
    throw error;
  }
  progress.finish();
  return total;
}

function describeEngine(
  engine: WasmEngine,
  tokenizer: Tokenizer,
  variant: string,
  options: CacheOptions,
): EngineInfo {
  const { eosTokenId, ...config } = engine.config();
  // Small models are often saved with the id of the full vocabulary, which they do not have.
  const candidates = [eosTokenId, tokenizer.endOfText];
  const endOfText = candidates.find(id => id !== undefined && id >= 0 && id < config.vocabSize);
  const { contextLength = config.nPositions, window, kvDtype, prefixCache, prefillChunk } = options;
  return {
    config,
    endOfText,
    variant,
    threads: 1,
    contextLength,
    // As wide as the context, it drops nothing.
    window: window !== undefined && window < contextLength ? window : undefined,
    kvDtype,
    kvBytes: engine.memory().kvReserved,
    prefixCache,
    prefillChunk: Math.min(prefillChunk, contextLength),
  };
}
