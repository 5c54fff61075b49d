import type {
  WasmConfig,
  WasmEngine,
  WasmLoader,
  WasmMemory,
  WasmModule,
  WasmSequence,
  WasmSequenceOptions,
  WasmStatus,
} from '../../bindings/ts/wasm-module.js';
import { wasmStepFailed, wasmStepPrefill } from '../../bindings/ts/wasm-module.js';

export interface FakeOptions {
  config?: Partial<WasmConfig>;
  /** Prompt tokens that one step computes. */
  prefillChunk?: number;
  stagingSize?: number;
  /** Replaces the memory at each call of consume, as growth does. */
  growing?: boolean;
  /** What is drawn after these ids. The default depends on each of them, the seed and the temperature. */
  nextToken?: (ids: readonly number[], options: WasmSequenceOptions) => number;
  /** Called before each step with its number from 1 on; may throw, as a trap does, or fail. */
  onStep?: (step: number) => WasmStatus | undefined;
  configStatus?: WasmStatus;
  finishStatus?: WasmStatus;
}

const ok: WasmStatus = { code: '', message: '' };

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
  received: number[] = [];
  loaders = 0;
  contextLength = -1;
  steps = 0;
  liveSequences = 0;
  sequenceOptions: WasmSequenceOptions[] = [];
  kvTokens = 0;

  constructor(options: FakeOptions = {}) {
    const fake = this;
    this.options = options;
    this.config = { ...defaultConfig, ...options.config };
    this.Loader = class extends FakeLoader {
      constructor(_config: string, contextLength: number) {
        super(fake);
        fake.contextLength = contextLength;
      }
    };
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
  }

  status(): WasmStatus {
    return this.#fake.options.configStatus ?? ok;
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

class FakeEngine implements WasmEngine {
  readonly #fake: FakeWasm;

  constructor(fake: FakeWasm) {
    this.#fake = fake;
  }

  config(): WasmConfig {
    return this.#fake.config;
  }

  memory(): WasmMemory {
    const { nLayer, nKvHead, nEmbd, nHead, nPositions } = this.#fake.config;
    const kvPerToken = 2 * nLayer * nKvHead * (nEmbd / nHead) * 4;
    const { kvTokens } = this.#fake;
    return {
      weights: 1000,
      activations: 100,
      kvReserved: nPositions * kvPerToken,
      kvUsed: kvTokens * kvPerToken,
      kvPerToken,
      kvTokens,
    };
  }

  createSequence(prompt: Int32Array, options: WasmSequenceOptions): WasmSequence {
    if (this.#fake.liveSequences > 0) throw new Error('Another sequence is alive');
    this.#fake.sequenceOptions.push(options);
    return new FakeSequence(this.#fake, prompt, options);
  }

  delete(): void {}
}

class FakeSequence implements WasmSequence {
  readonly #fake: FakeWasm;
  readonly #promptLength: number;
  readonly #ids: number[];
  readonly #options: WasmSequenceOptions;
  #prefilled = 0;
  #status = ok;

  constructor(fake: FakeWasm, prompt: Int32Array, options: WasmSequenceOptions) {
    this.#fake = fake;
    this.#ids = [...prompt];
    this.#promptLength = prompt.length;
    this.#options = options;
    fake.liveSequences++;
  }

  status(): WasmStatus {
    return this.#status;
  }

  step(): number {
    const fake = this.#fake;
    fake.steps++;
    this.#status = fake.options.onStep?.(fake.steps) ?? ok;
    if (this.#status.code !== '') return wasmStepFailed;
    if (this.#prefilled < this.#promptLength) {
      const chunk = fake.options.prefillChunk ?? 4;
      this.#prefilled = Math.min(this.#promptLength, this.#prefilled + chunk);
      if (this.#prefilled < this.#promptLength) return wasmStepPrefill;
    }
    fake.kvTokens = this.#ids.length;
    const next = (fake.options.nextToken ?? mix)(this.#ids, this.#options);
    this.#ids.push(next);
    return next;
  }

  remaining(): number {
    return (this.#fake.contextLength || this.#fake.config.nPositions) + 1 - this.#ids.length;
  }

  logits(): Float32Array {
    throw new Error('the package reads no logits yet');
  }

  prefilled(): number {
    return this.#prefilled;
  }

  delete(): void {
    this.#fake.liveSequences--;
  }
}

/** A letter, so that it is one character, which depends on all the ids and on the options. */
function mix(ids: readonly number[], options: WasmSequenceOptions): number {
  let hash = options.temperature === 0 ? 1 : options.seedLow ^ options.seedHigh;
  for (const id of ids) hash = (Math.imul(hash ^ id, 0x9e37_79b1) + 12345) >>> 0;
  return 97 + ((hash >>> 8) % 26);
}
