/// <reference lib="esnext.disposable" preserve="true" />
import { WorkerClient } from './client.js';
import { Deferred } from './deferred.js';
import { EngineClosedError } from './errors.js';
import { WorkerGeneration } from './generation.js';
import { checkLoadOptions, generateRequest } from './options.js';
import type { Platform } from './platform.js';
import type { GenerateRequest } from './protocol.js';
import type {
  EngineInfo,
  GenerateOptions,
  Generation,
  LoadOptions,
  MemoryReport,
  ModelSource,
  Prompt,
} from './types.js';

// Where the symbol is missing, compilers that lower `await using` look for this one.
const asyncDispose: typeof Symbol.asyncDispose =
  Symbol.asyncDispose ?? (Symbol.for('Symbol.asyncDispose') as typeof Symbol.asyncDispose);

/** A Worker with a model in it. */
export interface LoadedWorker {
  readonly client: WorkerClient;
  readonly info: EngineInfo;
}

/** What an engine is on every platform; each adds its own `load`. */
export class BaseEngine {
  /** The model, and the build that runs it. */
  readonly info: EngineInfo;
  readonly #client: WorkerClient;

  /** @internal */
  constructor({ client, info }: LoadedWorker) {
    this.#client = client;
    this.info = info;
  }

  /**
   * Continues a prompt. Runs take turns: a second one starts when the first has ended. Never throws; what goes wrong comes
   * from the returned object: InvalidArgumentError for an option or a prompt, GenerationError `context-full` for a prompt
   * that is longer than the position table, `non-finite` for a model that yields no numbers, `out-of-memory`,
   * EngineClosedError, or the reason of `options.signal`.
   */
  generate(prompt: Prompt, options: GenerateOptions = {}): Generation {
    let request: GenerateRequest;
    let refusal: unknown;
    try {
      // At once, so that the caller may change its arrays before the run starts.
      request = generateRequest(prompt, options, this.info.config.vocabSize);
    } catch (error) {
      refusal = error;
    }
    return new WorkerGeneration({
      start: sink => {
        if (refusal !== undefined) throw refusal;
        return this.#client.generate(request, sink);
      },
      hold: promise => this.#client.hold(promise),
      signal: refusal === undefined ? options.signal : undefined,
    });
  }

  /**
   * The memory that the engine takes now, also while it generates.
   * @throws EngineClosedError
   */
  memory(): Promise<MemoryReport> {
    return this.#client.memory();
  }

  /**
   * Ends the Worker and frees the memory. Runs and calls that wait reject with EngineClosedError `disposed`, later ones
   * too. Does nothing on an engine that is disposed or crashed.
   */
  dispose(): Promise<void> {
    return this.#client.close(new EngineClosedError('disposed', 'The engine was disposed.'));
  }

  /** So that `await using` disposes of the engine. */
  [asyncDispose](): Promise<void> {
    return this.dispose();
  }
}

/** Starts a Worker and loads a model into it; leaves no Worker behind when that fails. */
export async function loadWorker(
  platform: Platform,
  source: ModelSource,
  options: LoadOptions,
): Promise<LoadedWorker> {
  checkLoadOptions(options);
  const { signal, onProgress, contextLength, wasmUrl, workerUrl } = options;
  signal?.throwIfAborted();
  const files = await platform.locate(source, options);
  signal?.throwIfAborted();
  const resolve = (name: string, url: string | URL | undefined) =>
    url === undefined ? undefined : platform.resolveUrl(name, url);
  const request = { files, contextLength, wasmUrl: resolve('wasmUrl', wasmUrl) };
  const client = new WorkerClient(platform.spawn(resolve('workerUrl', workerUrl)));
  const aborted = new Deferred<never>();
  const abort = () => aborted.reject(signal?.reason);
  signal?.addEventListener('abort', abort);
  try {
    const info = await Promise.race([client.load(request, onProgress), aborted.promise]);
    return { client, info };
  } catch (error) {
    await client.close(new EngineClosedError('disposed', 'The engine was not loaded.'));
    throw error;
  } finally {
    signal?.removeEventListener('abort', abort);
  }
}
