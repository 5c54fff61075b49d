import {
  type WasmAttention,
  type WasmConfig,
  type WasmEngine,
  type WasmMemory,
  type WasmPrefixStats,
  type WasmSequence,
  type WasmSequenceOptions,
  type WasmStatus,
  wasmEventKinds,
  wasmOutputs,
} from '../../bindings/ts/wasm-module.js';
import { type FakeWasm, ok } from './fake-wasm-module.js';

const blockTokens = 4;
const maxBatch = 8;

/** Draws letters, and keeps the books that the engine of the core keeps. */
export class FakeEngine implements WasmEngine {
  readonly fake: FakeWasm;
  /** By age. */
  sequences: FakeSequence[] = [];
  /** The ids of what was computed before. */
  readonly #known: number[][] = [];
  #stats = { lookups: 0, hits: 0, tokensReused: 0, blocks: 0, evictions: 0 };
  #lastId = 0;
  #turn = 0;

  constructor(fake: FakeWasm) {
    this.fake = fake;
  }

  config(): WasmConfig {
    return this.fake.config;
  }

  memory(): WasmMemory {
    const { nLayer, nKvHead, nEmbd, nHead, nPositions } = this.fake.config;
    const kvPerToken = 2 * nLayer * nKvHead * (nEmbd / nHead) * 4;
    const kvTokens = this.sequences.reduce((sum, sequence) => sum + sequence.computed(), 0);
    return {
      weights: 1000,
      activations: 100,
      kvReserved: nPositions * kvPerToken,
      kvUsed: kvTokens * kvPerToken,
      kvShared: 0,
      kvCached: 0,
      kvPerToken,
      kvTokens,
    };
  }

  prefixStats(): WasmPrefixStats {
    return this.#stats;
  }

  startSequence(prompt: Int32Array, options: WasmSequenceOptions): WasmSequence {
    const sequence = new FakeSequence(this);
    sequence.append(prompt, options);
    if (options.reusePrefix && this.fake.engineOptions?.prefixCache) {
      sequence.reuse(this.#longestKnown(prompt));
    }
    sequence.setPaused(false);
    return sequence;
  }

  restoreSequence(bytes: Uint8Array): WasmSequence {
    const sequence = new FakeSequence(this);
    if (bytes.length % 4 !== 0) {
      sequence.fail({ code: 'invalid-argument', message: 'the saved state is damaged' });
      return sequence;
    }
    sequence.restore(Array.from(new Int32Array(bytes.slice().buffer)));
    return sequence;
  }

  step(): Int32Array {
    const { fake } = this;
    fake.steps++;
    const failure = fake.options.onStep?.(fake.steps) ?? ok;
    const events: number[] = [];
    const busy = this.sequences.filter(sequence => sequence.hasWork);
    if (fake.options.stalls) return Int32Array.from([]);
    if (failure.code !== '') {
      const oldest = busy.shift();
      oldest?.fail(failure);
      if (oldest) events.push(oldest.id(), wasmEventKinds.failed, 0);
    }
    const drawing = busy.filter(sequence => sequence.isDecoding);
    const prefilling = busy.find(sequence => !sequence.isDecoding);
    const turns = drawing.map((_, i) => drawing[(this.#turn + i) % drawing.length]);
    this.#turn++;
    const batch = [...turns.slice(0, maxBatch), prefilling];
    for (const sequence of batch) if (sequence) events.push(sequence.id(), ...sequence.compute());
    const drew = events.filter((kind, i) => i % 3 === 1 && kind === wasmEventKinds.token).length;
    fake.widest = Math.max(fake.widest, drew);
    return Int32Array.from(events);
  }

  cacheView(): Int32Array {
    const pool = 2 * Math.ceil(this.fake.contextLength / blockTokens);
    const blocks: number[] = [];
    const sequences = this.sequences.map(sequence => {
      const table = Array.from({ length: Math.ceil(sequence.computed() / blockTokens) }, () => {
        blocks.push(1, 0, 0);
        return blocks.length / 3 - 1;
      });
      return [sequence.id(), sequence.computed(), table.length, ...table];
    });
    const free = Array.from({ length: 3 * pool - blocks.length }, () => 0);
    const head = [pool, blockTokens, 0, ...blocks, ...free];
    return Int32Array.from([...head, sequences.length, ...sequences.flat()]);
  }

  /** Each token looks at all before it alike; the layer and head are in the first weight, for tests to see. */
  attention(ids: Int32Array, layer: number, head: number): WasmAttention {
    const n = ids.length;
    const heads = head < 0 ? this.fake.config.nHead : 1;
    const weights = Float32Array.from({ length: heads * n * n }, (_, index) => {
      const [i, j] = [Math.floor(index / n) % n, index % n];
      return j <= i ? 1 / (i + 1) : 0;
    });
    weights[0] = 100 * layer + head;
    this.fake.liveAttentions++;
    return {
      status: () => this.fake.options.attentionStatus ?? ok,
      weights: () => weights,
      delete: () => {
        this.fake.liveAttentions--;
      },
    };
  }

  delete(): void {}

  register(sequence: FakeSequence): number {
    this.sequences.push(sequence);
    this.fake.liveSequences++;
    return ++this.#lastId;
  }

  unregister(sequence: FakeSequence, computed: number[]): void {
    if (!this.sequences.includes(sequence)) throw new Error('The sequence is deleted already');
    this.sequences = this.sequences.filter(other => other !== sequence);
    this.fake.liveSequences--;
    this.#known.push(computed);
  }

  #longestKnown(prompt: Int32Array): number {
    const common = (ids: readonly number[]) => {
      let length = 0;
      while (length < prompt.length - 1 && ids[length] === prompt[length]) length++;
      return length;
    };
    const reused = Math.max(0, ...this.#known.map(common));
    const { lookups, hits, tokensReused } = this.#stats;
    this.#stats = {
      ...this.#stats,
      lookups: lookups + 1,
      hits: hits + (reused > 0 ? 1 : 0),
      tokensReused: tokensReused + reused,
    };
    return reused;
  }
}

export class FakeSequence implements WasmSequence {
  readonly #engine: FakeEngine;
  readonly #id: number;
  #ids: number[] = [];
  #options: WasmSequenceOptions | undefined;
  #paused = true;
  #promptBegin = 0;
  #promptEnd = 0;
  #computed = 0;
  #reused = 0;
  #status = ok;
  #saved: Uint8Array<ArrayBuffer> | undefined;

  constructor(engine: FakeEngine) {
    this.#engine = engine;
    this.#id = engine.register(this);
  }

  get hasWork(): boolean {
    return this.#status === ok && !this.#paused && this.#computed < this.#ids.length;
  }

  get isDecoding(): boolean {
    return this.#computed > 0 && this.#ids.length - this.#computed === 1;
  }

  compute(): [kind: number, token: number] {
    const { fake } = this.#engine;
    const chunk = fake.options.prefillChunk ?? 4;
    this.#computed = Math.min(this.#ids.length, this.#computed + chunk);
    if (this.#computed < this.#ids.length) return [wasmEventKinds.prefill, 0];
    const draws = this.#options?.output === wasmOutputs.tokens;
    return draws ? [wasmEventKinds.token, this.draw()] : [wasmEventKinds.done, 0];
  }

  draw(): number {
    if (!this.#options) throw new Error('A restored sequence needs options');
    const next = (this.#engine.fake.options.nextToken ?? mix)(this.#ids, this.#options);
    this.#ids.push(next);
    return next;
  }

  fail(status: WasmStatus): void {
    this.#status = status;
    this.#computed = 0;
  }

  reuse(count: number): void {
    this.#reused = count;
    this.#computed = count;
  }

  restore(ids: number[]): void {
    this.#ids = ids;
    this.#computed = Math.max(0, ids.length - 1);
  }

  status(): WasmStatus {
    return this.#status;
  }

  id(): number {
    return this.#id;
  }

  setPaused(paused: boolean): void {
    this.#paused = paused;
  }

  remaining(): number {
    if (this.#options?.shift) return Number.POSITIVE_INFINITY;
    return this.#engine.fake.contextLength + 1 - this.#ids.length;
  }

  computed(): number {
    return this.#computed;
  }

  reused(): number {
    return this.#reused;
  }

  ids(): Int32Array {
    return Int32Array.from(this.#ids);
  }

  logits(): Float32Array {
    throw new Error('the package reads them row by row');
  }

  logitsAt(): Float32Array | null {
    return null;
  }

  logitsCount(): number {
    return 0;
  }

  values(): Float64Array {
    // Hidden states that tell how many ids there are, and which is the last.
    if (this.#options?.output === wasmOutputs.meanHidden) {
      const { nEmbd } = this.#engine.fake.config;
      const last = this.#ids.at(-1) ?? 0;
      return Float64Array.from({ length: nEmbd }, (_, i) =>
        i === 0 ? this.#ids.length : last / i,
      );
    }
    const count = this.#options?.promptLogprobs ?? -1;
    if (count < 0) return new Float64Array();
    const prompt = this.#ids.slice(Math.max(this.#promptBegin, 1), this.#promptEnd);
    return Float64Array.from(prompt.flatMap(id => logprobsOf(id, count)));
  }

  logProbabilities(count: number): Float64Array {
    return Float64Array.from(logprobsOf(this.#ids.at(-1) ?? 0, count));
  }

  append(ids: Int32Array, options: WasmSequenceOptions): WasmStatus {
    this.#engine.fake.sequenceOptions.push(options);
    this.#options = options;
    this.#promptBegin = this.#ids.length;
    this.#ids.push(...ids);
    this.#promptEnd = this.#ids.length;
    this.#computed = Math.min(this.#computed, this.#ids.length - 1);
    this.#reused = this.#computed;
    return ok;
  }

  truncate(size: number): WasmStatus {
    this.#ids.length = size;
    this.#computed = Math.min(this.#computed, Math.max(0, size - 1));
    return ok;
  }

  fork(): WasmSequence {
    const fork = new FakeSequence(this.#engine);
    fork.restore([...this.#ids]);
    return fork;
  }

  forkAndRedraw(options: WasmSequenceOptions): WasmSequence {
    const fork = new FakeSequence(this.#engine);
    const ids = this.#ids.slice(0, -1);
    fork.append(Int32Array.from(ids), options);
    fork.reuse(ids.length);
    fork.draw();
    fork.setPaused(false);
    return fork;
  }

  save(): WasmStatus {
    this.#saved = new Uint8Array(Int32Array.from(this.#ids).buffer);
    return ok;
  }

  takeSaved(): Uint8Array<ArrayBuffer> {
    if (!this.#saved) throw new Error('Nothing was saved');
    const saved = this.#saved;
    this.#saved = undefined;
    return saved;
  }

  delete(): void {
    this.#engine.unregister(this, this.#ids.slice(0, this.#computed));
  }
}

/** Of a model that gives the token that comes half of it, and each later letter half of the rest. */
function logprobsOf(id: number, count: number): number[] {
  const likeliest = Array.from({ length: count }, (_, i) => [id + i, -(i + 1) * Math.LN2]);
  return [-Math.LN2, ...likeliest.flat()];
}

/** A letter, so that it is one character, which depends on all the ids and on the options. */
function mix(ids: readonly number[], options: WasmSequenceOptions): number {
  let hash = options.temperature === 0 ? 1 : options.seedLow ^ options.seedHigh;
  for (const id of ids) hash = (Math.imul(hash ^ id, 0x9e37_79b1) + 12345) >>> 0;
  return 97 + ((hash >>> 8) % 26);
}
