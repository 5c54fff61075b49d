/**
 * SHA-256 (FIPS 180-4) of bytes that arrive in pieces: the Web Cryptography API only takes them all at once, and a package
 * that runs in a page without a bundler can't have dependencies to import by name.
 */
export interface Hash {
  update(bytes: Uint8Array): void;
  /** In hex. The last call. */
  digest(): string;
}

const roundConstants = fractions(64, 1 / 3);

/** The first 32 bits of the fractional parts of powers of the first primes. */
function fractions(count: number, exponent: number): Int32Array {
  const primes: number[] = [];
  for (let n = 2; primes.length < count; n++) if (primes.every(p => n % p !== 0)) primes.push(n);
  return Int32Array.from(primes, prime => {
    const root = prime ** exponent;
    return Math.floor((root - Math.floor(root)) * 2 ** 32) | 0;
  });
}

export class Sha256 implements Hash {
  readonly #state = fractions(8, 1 / 2);
  readonly #schedule = new Int32Array(64);
  readonly #block = new Uint8Array(64);
  readonly #view = new DataView(this.#block.buffer);
  #filled = 0;
  #byteCount = 0;

  update(bytes: Uint8Array): void {
    this.#byteCount += bytes.length;
    let at = 0;
    if (this.#filled > 0) {
      at = Math.min(64 - this.#filled, bytes.length);
      this.#block.set(bytes.subarray(0, at), this.#filled);
      this.#filled += at;
      if (this.#filled < 64) return;
      this.#compress(this.#view, 0);
    }
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    for (; at + 64 <= bytes.length; at += 64) this.#compress(view, at);
    this.#block.set(bytes.subarray(at));
    this.#filled = bytes.length - at;
  }

  digest(): string {
    const bitCount = BigInt(this.#byteCount) * 8n;
    const padding = new Uint8Array(((119 - (this.#byteCount % 64)) % 64) + 9);
    padding[0] = 0x80;
    new DataView(padding.buffer).setBigUint64(padding.length - 8, bitCount);
    this.update(padding);
    return Array.from(this.#state, word => (word >>> 0).toString(16).padStart(8, '0')).join('');
  }

  #compress(block: DataView, at: number): void {
    const state = this.#state;
    const w = this.#schedule;
    for (let i = 0; i < 16; i++) w[i] = block.getInt32(at + 4 * i);
    for (let i = 16; i < 64; i++) {
      const x = w[i - 15]!;
      const y = w[i - 2]!;
      const s0 = ((x >>> 7) | (x << 25)) ^ ((x >>> 18) | (x << 14)) ^ (x >>> 3);
      const s1 = ((y >>> 17) | (y << 15)) ^ ((y >>> 19) | (y << 13)) ^ (y >>> 10);
      w[i] = (((w[i - 16]! + s0) | 0) + ((w[i - 7]! + s1) | 0)) | 0;
    }
    let a = state[0]!;
    let b = state[1]!;
    let c = state[2]!;
    let d = state[3]!;
    let e = state[4]!;
    let f = state[5]!;
    let g = state[6]!;
    let h = state[7]!;
    const k = roundConstants;
    for (let i = 0; i < 64; i++) {
      // Sums are cut to 32 bits as they grow: that keeps them integers for the compiler.
      const s1 = ((e >>> 6) | (e << 26)) ^ ((e >>> 11) | (e << 21)) ^ ((e >>> 25) | (e << 7));
      const t1 = (((((h + s1) | 0) + (g ^ (e & (f ^ g)))) | 0) + ((k[i]! + w[i]!) | 0)) | 0;
      const s0 = ((a >>> 2) | (a << 30)) ^ ((a >>> 13) | (a << 19)) ^ ((a >>> 22) | (a << 10));
      const t2 = (s0 + ((a & b) | (c & (a | b)))) | 0;
      h = g;
      g = f;
      f = e;
      e = (d + t1) | 0;
      d = c;
      c = b;
      b = a;
      a = (t1 + t2) | 0;
    }
    state[0] = (state[0]! + a) | 0;
    state[1] = (state[1]! + b) | 0;
    state[2] = (state[2]! + c) | 0;
    state[3] = (state[3]! + d) | 0;
    state[4] = (state[4]! + e) | 0;
    state[5] = (state[5]! + f) | 0;
    state[6] = (state[6]! + g) | 0;
    state[7] = (state[7]! + h) | 0;
  }
}
