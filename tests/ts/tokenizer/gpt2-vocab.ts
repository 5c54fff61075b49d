/**
 * GPT-2's real vocabulary for the tests. The published vocab.json is not at hand, but a vocabulary-only
 * GGUF file is; its metadata holds the same tokens and merges.
 */
import { existsSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

/** A file of the tokenizer vectors, which live beside the repository and not in it. */
export function vectorPath(name: string): string {
  return fileURLToPath(new URL(`../../../../shared/tokenizer-vectors/${name}`, import.meta.url));
}

const ggufPath = vectorPath('ggml-vocab-gpt-2.gguf');

/** Whether the real vocabulary is on this machine; the suites that need it skip where it is not. */
export const haveGpt2 = existsSync(ggufPath);

/** Ends the title of a suite that needs the real vocabulary, so that a skip says why. */
export const needsGpt2 = haveGpt2 ? '' : ' (skipped: ../shared/tokenizer-vectors is absent)';

export interface Gpt2Vocab {
  /** Token in byte letters -> id, as in vocab.json. */
  vocab: Record<string, number>;
  /** Merges in order of rank, each "left right", as the lines of merges.txt. */
  merges: string[];
}

type MetadataValue = number | bigint | boolean | string | MetadataValue[];

const STRING = 8;
const ARRAY = 9;

class MetadataReader {
  readonly #bytes: Uint8Array;
  readonly #view: DataView;
  readonly #text = new TextDecoder('utf-8', { ignoreBOM: true, fatal: true });
  #at = 0;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  }

  #skip(size: number): number {
    const start = this.#at;
    this.#at += size;
    return start;
  }

  u32(): number {
    return this.#view.getUint32(this.#skip(4), true);
  }

  u64(): number {
    return Number(this.#view.getBigUint64(this.#skip(8), true));
  }

  string(): string {
    const length = this.u64();
    const start = this.#skip(length);
    return this.#text.decode(this.#bytes.subarray(start, start + length));
  }

  value(type: number): MetadataValue {
    switch (type) {
      case 0:
        return this.#view.getUint8(this.#skip(1));
      case 1:
        return this.#view.getInt8(this.#skip(1));
      case 2:
        return this.#view.getUint16(this.#skip(2), true);
      case 3:
        return this.#view.getInt16(this.#skip(2), true);
      case 4:
        return this.u32();
      case 5:
        return this.#view.getInt32(this.#skip(4), true);
      case 6:
        return this.#view.getFloat32(this.#skip(4), true);
      case 7:
        return this.#view.getUint8(this.#skip(1)) !== 0;
      case STRING:
        return this.string();
      case ARRAY: {
        const elementType = this.u32();
        const count = this.u64();
        return Array.from({ length: count }, () => this.value(elementType));
      }
      case 10:
        return this.#view.getBigUint64(this.#skip(8), true);
      case 11:
        return this.#view.getBigInt64(this.#skip(8), true);
      case 12:
        return this.#view.getFloat64(this.#skip(8), true);
      default:
        throw new Error(`GGUF metadata type ${type} at byte ${this.#at} is unknown`);
    }
  }
}

function strings(value: MetadataValue | undefined, key: string): string[] {
  if (!Array.isArray(value) || !value.every(item => typeof item === 'string')) {
    throw new Error(`${key} in the GGUF file is not a list of strings`);
  }
  return value;
}

/** Reads tokens and merges from the GGUF file's metadata. */
export function loadGpt2(): Gpt2Vocab {
  const reader = new MetadataReader(readFileSync(ggufPath));
  if (reader.u32() !== 0x46554747) throw new Error('the file does not start with "GGUF"');
  const version = reader.u32();
  if (version < 2) throw new Error(`GGUF version ${version} has other count widths`);
  reader.u64(); // tensors: a vocabulary-only file has none
  const entries = reader.u64();
  const metadata = new Map<string, MetadataValue>();
  for (let i = 0; i < entries; i++) {
    const key = reader.string();
    metadata.set(key, reader.value(reader.u32()));
  }
  const tokens = strings(metadata.get('tokenizer.ggml.tokens'), 'tokenizer.ggml.tokens');
  return {
    vocab: Object.fromEntries(tokens.map((token, id) => [token, id])),
    merges: strings(metadata.get('tokenizer.ggml.merges'), 'tokenizer.ggml.merges'),
  };
}
