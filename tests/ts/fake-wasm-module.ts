import type {
  WasmConfig,
  WasmEngine,
  WasmEngineOptions,
  WasmLoader,
  WasmModule,
  WasmSequenceOptions,
  WasmStatus,
} from '../../bindings/ts/wasm-module.js';
import { FakeEngine } from './fake-engine.js';

export interface FakeOptions {
  config?: Partial<WasmConfig>;
  /** Prompt tokens that one step computes. */
  prefillChunk?: number;
  stagingSize?: number;
  /** Replaces the memory at each call of consume, as growth does. */
  growing?: boolean;
  /** What is drawn after these ids. The default depends on each of them, the seed and the temperature. */
  nextToken?: (ids: readonly number[], options: WasmSequenceOptions) => number;
  /** Called before each step with its number from 1 on; may throw, as a trap does, or fail the oldest sequence. */
  onStep?: (step: number) => WasmStatus | undefined;
  /** Makes steps do nothing, which the engine promises not to. */
  stalls?: boolean;
  configStatus?: WasmStatus;
  finishStatus?: WasmStatus;
  attentionStatus?: WasmStatus;
}

export const ok: WasmStatus = { code: '', message: '' };

const defaultConfig: WasmConfig = {
  nLayer: 2,
  nHead: 2,
  nKvHead: 2,
  nEmbd: 8,
  nInner: 32,
  nPositions: 128,
  vocabSize: 300,
  layerNormEpsilon: 1e-5,
  eosTokenId: 256,
};

/** The fake's weights file: its length as eight bytes, and then any bytes. */
export function fakeWeights(byteCount: number): Uint8Array<ArrayBuffer> {
  const bytes = Uint8Array.from({ length: byteCount }, (_, i) => (i * 31 + 7) % 251);
  new DataView(bytes.buffer).setBigUint64(0, BigInt(byteCount), true);
  return bytes;
}

/** A stand-in for the Emscripten module that keeps its rules, and counts what is done with it. */
export class FakeWasm implements WasmModule {
  readonly Loader: WasmModule['Loader'];
  readonly options: FakeOptions;
  readonly config: WasmConfig;
  heap = new Uint8Array(1 << 16);
  /** By the last loader. */
  received: number[] = [];
  loaders = 0;
  engineOptions: WasmEngineOptions | undefined;
  steps = 0;
  /** The most sequences that drew a token in one step. */
  widest = 0;
  liveSequences = 0;
  liveAttentions = 0;
  sequenceOptions: WasmSequenceOptions[] = [];

  constructor(options: FakeOptions = {}) {
    const fake = this;
    this.options = options;
    this.config = { ...defaultConfig, ...options.config };
    this.Loader = class extends FakeLoader {
      constructor(_config: string, engineOptions: WasmEngineOptions) {
        super(fake);
        fake.engineOptions = engineOptions;
      }
    };
  }

  get contextLength(): number {
    return this.engineOptions?.contextLength || this.config.nPositions;
  }

  get HEAPU8(): Uint8Array {
    return this.heap;
  }

  /** Detaches every view that was taken before. */
  grow(): void {
    const { buffer } = this.heap;
    const larger = new Uint8Array(buffer.byteLength + 4096);
    larger.set(this.heap);
    structuredClone(buffer, { transfer: [buffer] });
    this.heap = larger;
  }
}

class FakeLoader implements WasmLoader {
  readonly #fake: FakeWasm;

  constructor(fake: FakeWasm) {
    this.#fake = fake;
    fake.loaders++;
    fake.received = [];
  }

  status(): WasmStatus {
    return this.#fake.options.configStatus ?? ok;
  }

  setIndex(): WasmStatus {
    return ok;
  }

  shards(): string[] {
    return [];
  }

  nextFile(): WasmStatus {
    return ok;
  }

  config(): WasmConfig {
    return this.#fake.config;
  }

  ggufTokenizer(): null {
    return null;
  }

  stagingAddress(): number {
    return this.#fake.heap.length - 4096;
  }

  stagingSize(): number {
    return this.#fake.options.stagingSize ?? 1024;
  }

  consume(byteCount: number): WasmStatus {
    const fake = this.#fake;
    const at = this.stagingAddress();
    fake.received.push(...fake.heap.subarray(at, at + byteCount));
    if (fake.options.growing) fake.grow();
    const announced = this.fileBytes();
    if (announced > 2 ** 40) return { code: 'invalid-model', message: 'the header is too long' };
    return ok;
  }

  fileBytes(): number {
    const head = Uint8Array.from(this.#fake.received.slice(0, 8));
    return head.length < 8 ? 0 : Number(new DataView(head.buffer).getBigUint64(0, true));
  }

  finish(): WasmStatus {
    const { received, options } = this.#fake;
    if (options.finishStatus) return options.finishStatus;
    if (received.length >= 8 && received.length === this.fileBytes()) return ok;
    return { code: 'truncated', message: `the file ends after ${received.length} bytes` };
  }

  takeEngine(): WasmEngine {
    return new FakeEngine(this.#fake);
  }

  delete(): void {
    this.#fake.loaders--;
  }
}
