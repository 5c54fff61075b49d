/** What of WebAssembly this JavaScript engine has. */
export interface WasmFeatures {
  readonly simd: boolean;
  readonly relaxedSimd: boolean;
  /** Shared memory and atomic instructions; whether memory may be shared here is another question. */
  readonly threads: boolean;
}

// Modules of one function each. The format: https://webassembly.github.io/spec/core/binary/modules.html
const magic = [0x00, 0x61, 0x73, 0x6d, 0x01, 0x00, 0x00, 0x00];
const functionSection = [0x03, 0x02, 0x01, 0x00];
const end = 0x0b;

function section(id: number, content: readonly number[]): number[] {
  return [id, content.length, ...content];
}

function moduleOf(
  resultTypes: readonly number[],
  memory: readonly number[],
  instructions: readonly number[],
): Uint8Array<ArrayBuffer> {
  const type = section(0x01, [1, 0x60, 0, resultTypes.length, ...resultTypes]);
  const body = [0, ...instructions, end];
  const code = section(0x0a, [1, body.length, ...body]);
  return Uint8Array.from([...magic, ...type, ...functionSection, ...memory, ...code]);
}

const v128 = 0x7b;
// i32.const 0, i8x16.splat
const vector = [0x41, 0, 0xfd, 0x0f];

const simdModule = moduleOf([v128], [], [...vector, 0xfd, 0x62]); // i8x16.popcnt
const relaxedSimdModule = moduleOf(
  [v128],
  [],
  [...vector, ...vector, ...vector, 0xfd, 0x93, 0x02], // i32x4.relaxed_dot_i8x16_i7x16_add_s
);
const threadsModule = moduleOf(
  [],
  section(0x05, [1, 0x03, 1, 1]), // One page, shared.
  [0x41, 0, 0xfe, 0x10, 0x02, 0x00, 0x1a], // i32.atomic.load, drop
);

export function detectFeatures(): WasmFeatures {
  return {
    simd: WebAssembly.validate(simdModule),
    relaxedSimd: WebAssembly.validate(relaxedSimdModule),
    threads: WebAssembly.validate(threadsModule),
  };
}

/**
 * Why memory cannot be shared between Workers here, or undefined if it can. To be asked before a build with threads is
 * instantiated: in some browsers that ends the page.
 */
export function whyMemoryIsNotShared(
  features: WasmFeatures,
  // Node has no such notion, and shares.
  { crossOriginIsolated = true }: { crossOriginIsolated?: boolean } = globalThis,
): string | undefined {
  if (!crossOriginIsolated) {
    return 'the page is not cross-origin isolated (the headers Cross-Origin-Opener-Policy and Cross-Origin-Embedder-Policy)';
  }
  if (!features.threads || typeof SharedArrayBuffer === 'undefined') {
    return 'this browser has no shared WebAssembly memory';
  }
  return undefined;
}
