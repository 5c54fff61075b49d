/// <reference lib="esnext.disposable" preserve="true" />
import {
  type AttentionOptions,
  type AttentionWeights,
  attentionRequest,
  headsOf,
} from './attention.js';
import { type CacheRecording, WorkerCacheRecording } from './cache-recording.js';
import type { CacheView } from './cache-view.js';
import { decodeCacheView } from './cache-view-decoder.js';
import { WorkerClient } from './client.js';
import { embedRequest, logitsRequest, scoreRequest } from './compute-options.js';
import type {
  ComputeOptions,
  EmbedOptions,
  EngineTokenizer,
  LogitsOptions,
  TextScore,
} from './compute-types.js';
import { Deferred } from './deferred.js';
import { describe } from './describe.js';
import { asyncDispose } from './dispose.js';
import { downloadRequest } from './download-options.js';
import { EngineClosedError, InvalidArgumentError, type KvasmError } from './errors.js';
import { type LoadedEngine, startGeneration } from './generation.js';
import { checkLoadOptions } from './options.js';
import type { Platform } from './platform.js';
import { WorkerSession } from './session.js';
import { locateModel } from './source.js';
import type {
  EngineInfo,
  GenerateOptions,
  Generation,
  LoadOptions,
  MemoryReport,
  ModelSource,
  Prompt,
  Session,
} from './types.js';
import { WorkerTokenizer } from './worker-tokenizer.js';

/** What an engine is on every platform; each adds its own `load`. */
export class BaseEngine {
  /** The model, and the build that runs it. */
  readonly info: EngineInfo;
  readonly #loaded: LoadedEngine;

  /** @internal */
  constructor(loaded: LoadedEngine) {
    this.#loaded = loaded;
    this.info = loaded.info;
  }

  /**
   * Continues a prompt. Runs that go on at once are computed together, with the tokens that each would have alone. Never
   * throws; what goes wrong comes from the returned object: InvalidArgumentError for an option or a prompt, GenerationError
   * `context-full` for a prompt that is longer than the context, `non-finite` for a model that yields no numbers,
   * `out-of-memory` for one that the cache has no room for, EngineClosedError, or the reason of `options.signal`.
   */
  generate(prompt: Prompt, options: GenerateOptions = {}): Generation {
    return startGeneration(this.#loaded, prompt, options);
  }

  /** A conversation that starts empty. */
  session(): Session {
    return new WorkerSession(this.#loaded, this.#loaded.client.newSession());
  }

  /**
   * A session as `Session.save` left it, on an engine with the same model, `window`, `kvDtype` and build.
   * @throws InvalidArgumentError for bytes that are damaged, of another model or longer than the context;
   *   GenerationError `out-of-memory`; EngineClosedError
   */
  async restore(bytes: Uint8Array): Promise<Session> {
    if (!(bytes instanceof Uint8Array)) {
      throw new InvalidArgumentError(
        `A saved session must be a Uint8Array, not ${describe(bytes)}.`,
      );
    }
    const session = this.#loaded.client.newSession();
    const copy = new Uint8Array(bytes);
    await this.#loaded.client.call('restore', { session, bytes: copy }, [copy.buffer]);
    return new WorkerSession(this.#loaded, session);
  }

  /** The model's tokenizer. */
  get tokenizer(): EngineTokenizer {
    return new WorkerTokenizer(this.#loaded);
  }

  /**
   * What the model says about the next token after a text or ids: [config.vocabSize]; with `all`, after each of the n tokens:
   * [n, config.vocabSize], row by row. As they come out of the model, whatever they are.
   * @throws InvalidArgumentError; GenerationError `context-full` for more tokens than the context has room for, and
   *   `out-of-memory`; EngineClosedError; the reason of `options.signal`
   */
  async logits(prompt: Prompt, options: LogitsOptions = {}): Promise<Float32Array> {
    const request = logitsRequest(prompt, options, this.info);
    return this.#loaded.client.call('logits', request, [], options.signal);
  }

  /**
   * A text's, or ids', embedding: the final hidden states, after the last layer norm, by default their mean. [config.nEmbd]
   * @throws As `logits`; GenerationError `non-finite` for a model that yields no numbers
   */
  async embed(prompt: Prompt, options: EmbedOptions = {}): Promise<Float32Array> {
    const request = embedRequest(prompt, options, this.info);
    return this.#loaded.client.call('embed', request, [], options.signal);
  }

  /**
   * How likely each token of a text is after those before it, by the distribution that tokens are drawn from with the
   * temperature 1. For the first token to count, put the end-of-text id before the ids.
   * @throws As `embed`
   */
  async score(prompt: Prompt, options: ComputeOptions = {}): Promise<TextScore> {
    const request = scoreRequest(prompt, options, this.info);
    return this.#loaded.client.call('score', request, [], options.signal);
  }

  /**
   * The memory that the engine takes now, also while it generates.
   * @throws EngineClosedError
   */
  memory(): Promise<MemoryReport> {
    return this.#loaded.client.call('memory', undefined);
  }

  /**
   * What the key/value cache holds now, also while the engine generates. To see each of its steps, record it.
   * @throws EngineClosedError
   */
  async cacheView(): Promise<CacheView> {
    return decodeCacheView(await this.#loaded.client.call('cacheView', undefined));
  }

  /**
   * Keeps a view of the key/value cache for each step of the engine from now on, until the recording is stopped. It costs a
   * few microseconds a token, and no message but those that ask for what was recorded.
   * @throws EngineClosedError
   */
  recordCache(): Promise<CacheRecording> {
    return WorkerCacheRecording.start(this.#loaded);
  }

  /**
   * What the tokens of a prompt look at in one layer. Computed by a pass of its own over the whole prompt, which takes time
   * as `generate` with `cache: 'none'` does, and 4 n^2 bytes for each head and n tokens; generating is not slowed down by
   * the possibility.
   * @throws InvalidArgumentError; GenerationError `context-full` or `out-of-memory`; EngineClosedError
   */
  async attention(prompt: Prompt, options: AttentionOptions): Promise<AttentionWeights> {
    const { config } = this.info;
    const request = attentionRequest(prompt, options, config);
    const answer = await this.#loaded.client.call('attention', request);
    return { ...answer, layer: request.layer, heads: headsOf(request.head, config) };
  }

  /**
   * Why it can do nothing more, if it cannot.
   * @internal
   */
  get closed(): KvasmError | undefined {
    return this.#loaded.client.closed;
  }

  /**
   * Ends the Worker and frees the memory. Runs and calls that wait reject with EngineClosedError `disposed`, later ones
   * too. Does nothing on an engine that is disposed or crashed.
   */
  dispose(): Promise<void> {
    return this.#loaded.client.close(new EngineClosedError('disposed', 'The engine was disposed.'));
  }

  /** So that `await using` disposes of the engine. */
  [asyncDispose](): Promise<void> {
    return this.dispose();
  }
}

/** Engines that nobody can reach any more, nor a session or run of theirs, end, even if nobody has disposed of them. */
const unreachable = new FinalizationRegistry<WorkerClient>(client => client.abandon());

/** Starts a Worker and loads a model into it; leaves no Worker behind when that fails. */
export async function loadWorker(
  platform: Platform,
  source: ModelSource,
  options: LoadOptions,
): Promise<LoadedEngine> {
  const startedAt = performance.now();
  const cache = checkLoadOptions(options);
  const { signal, workerUrl } = options;
  signal?.throwIfAborted();
  const model = await locateModel(source, options, platform);
  signal?.throwIfAborted();
  const resolve = (name: string, url: string | URL | undefined) =>
    url === undefined ? undefined : platform.resolveUrl(name, url);
  const download = downloadRequest(options, path => platform.resolveDirectory(path));
  const { variant, threads = 'auto' } = options;
  // The folder of a file, too.
  const wasmUrl = resolve('wasmUrl', options.wasmUrl)?.replace(/(\/[^/]*\.wasm|\/)?$/, '/');
  const request = { model, download, build: { variant, threads, wasmUrl }, cache };
  const client = new WorkerClient(platform.spawn(resolve('workerUrl', workerUrl)));
  const aborted = new Deferred<never>();
  const abort = () => aborted.reject(signal?.reason);
  signal?.addEventListener('abort', abort);
  try {
    const info = await Promise.race([client.load(request, options), aborted.promise]);
    const loaded = { client, info, loadTime: performance.now() - startedAt };
    unreachable.register(loaded, client);
    return loaded;
  } catch (error) {
    await client.close(new EngineClosedError('disposed', 'The engine was not loaded.'));
    throw error;
  } finally {
    signal?.removeEventListener('abort', abort);
  }
}
