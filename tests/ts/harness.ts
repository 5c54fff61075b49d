import { BaseEngine, loadWorker } from '../../bindings/ts/engine.js';
import type { Platform, WorkerHandle } from '../../bindings/ts/platform.js';
import type { ClientMessage, FileLocation, WorkerMessage } from '../../bindings/ts/protocol.js';
import { isHubId, locateAtUrl, locateOnHub, parseUrl } from '../../bindings/ts/source.js';
import { openStorageInNode } from '../../bindings/ts/storage/open-in-node.js';
import { letterOf } from '../../bindings/ts/tokenizer/byte-letters.js';
import type {
  GenerateChunk,
  LoadOptions,
  ModelFiles,
  ModelSource,
} from '../../bindings/ts/types.js';
import type { Build } from '../../bindings/ts/worker/build.js';
import { Sha256 } from '../../bindings/ts/worker/download/sha256.js';
import { listDirectory, openInNode } from '../../bindings/ts/worker/files-node.js';
import { serve } from '../../bindings/ts/worker/host.js';
import type { WorkerEnvironment } from '../../bindings/ts/worker/load.js';
import { type FakeOptions, FakeWasm, fakeWeights } from './fake-wasm-module.js';

/** Ids 0 to 255 are the bytes; 256 is <|endoftext|>. */
export const vocab = JSON.stringify(
  Object.fromEntries([
    ...Array.from({ length: 256 }, (_, byte) => [letterOf(byte), byte] as const),
    ['<|endoftext|>', 256] as const,
  ]),
);
export const merges = '#version: 0.2\n';
export const endOfText = 256;
export const config = JSON.stringify({ n_positions: 128 });

export function modelFiles(changes: Record<string, ModelFiles[string]> = {}): ModelFiles {
  return {
    'config.json': new Blob([config]),
    'vocab.json': new Blob([vocab]),
    'merges.txt': new Blob([merges]),
    'model.safetensors': fakeWeights(5000),
    ...changes,
  };
}

export function fakeBuild(wasm: FakeWasm): Build {
  return {
    module: wasm,
    variant: 'simd',
    variantReason: 'it is a fake',
    threads: 1,
    threadsReason: 'it is a fake',
    warning: undefined,
    died: new Promise(() => {}),
  };
}

/** Runs the Worker's code in this thread, behind a real message channel. */
export class FakePlatform implements Platform {
  readonly environment: WorkerEnvironment;
  spawned = 0;
  alive = 0;
  busy = false;
  sent: ClientMessage[] = [];
  /** Between tries, in milliseconds; they are over at once. */
  pauses: number[] = [];
  /** Lets a test say that the Worker has died. */
  fail: (reason: string) => void = () => {};

  constructor(wasm: FakeWasm, environment: Partial<WorkerEnvironment> = {}) {
    this.environment = {
      createBuild: async () => fakeBuild(wasm),
      openFile: openInNode,
      listDirectory,
      openStorage: openStorageInNode,
      lock: async () => () => {},
      makeHash: () => new Sha256(),
      network: {
        sleep: async milliseconds => void this.pauses.push(milliseconds),
        random: () => 1,
        seesRedirects: true,
      },
      ...environment,
    };
  }

  spawn(): WorkerHandle {
    const { port1, port2 } = new MessageChannel();
    const stop = serve(
      {
        post: (message, transfer) => port2.postMessage(message, transfer),
        onMessage(listener) {
          port2.onmessage = event => listener(event.data as ClientMessage);
        },
      },
      this.environment,
    );
    this.spawned++;
    this.alive++;
    return {
      post: (message, transfer) => {
        this.sent.push(message);
        port1.postMessage(message, transfer);
      },
      onMessage(listener) {
        port1.onmessage = event => listener(event.data as WorkerMessage);
      },
      onFailure: listener => {
        this.fail = listener;
      },
      setBusy: busy => {
        this.busy = busy;
      },
      terminate: async () => {
        stop();
        port1.close();
        this.alive--;
      },
    };
  }

  resolveUrl(name: string, url: string | URL): string {
    return parseUrl(name, url).href;
  }

  resolveDirectory(path: string): string {
    return path;
  }

  async locateModel(source: string, options: LoadOptions) {
    return isHubId(source)
      ? locateOnHub(source, options)
      : this.locateModelAt(parseUrl('The model', source), options);
  }

  locateModelAt(url: URL, options: LoadOptions) {
    return locateAtUrl(url, options);
  }

  locateFile(text: string | URL): FileLocation {
    return { kind: 'url', url: String(text) };
  }
}

export interface Fixture {
  readonly engine: BaseEngine;
  readonly wasm: FakeWasm;
  readonly platform: FakePlatform;
}

export async function loadFake(
  options: FakeOptions = {},
  loadOptions: LoadOptions = {},
): Promise<Fixture> {
  const wasm = new FakeWasm(options);
  const platform = new FakePlatform(wasm);
  return { engine: await loadOn(platform, modelFiles(), loadOptions), wasm, platform };
}

export async function loadOn(
  platform: Platform,
  source: ModelSource,
  options: LoadOptions = {},
): Promise<BaseEngine> {
  return new BaseEngine(await loadWorker(platform, source, options));
}

export async function collect(chunks: AsyncIterable<GenerateChunk>): Promise<GenerateChunk[]> {
  const all: GenerateChunk[] = [];
  for await (const chunk of chunks) all.push(chunk);
  return all;
}

/** What a promise rejects with. */
export async function rejection(promise: Promise<unknown>): Promise<unknown> {
  try {
    await promise;
  } catch (error) {
    return error;
  }
  throw new Error('The promise did not reject');
}

/** Lets everything that is under way in message channels go on for a while. */
export function idle(milliseconds = 30): Promise<void> {
  return new Promise(resolve => setTimeout(resolve, milliseconds));
}
