/** Where the WebAssembly builds are that bindings/CMakeLists.txt lists, each as Emscripten's glue and the module. */

import type { Variant } from './types.js';

export type BuildName = Variant | `${Variant}-threads`;

/** The URLs of a build's two files. */
export interface BuildFiles {
  readonly glue: string;
  readonly wasm: string;
}

// Bundlers look for these very expressions, and emit the files as they are. So the glue is imported by its URL: imported by
// name it would be split off, which Vite refuses for workers unless it is told to write modules.
export const builds: Readonly<Record<BuildName, BuildFiles>> = {
  simd: {
    glue: new URL('./wasm/kvasm-simd.js', import.meta.url).href,
    wasm: new URL('./wasm/kvasm-simd.wasm', import.meta.url).href,
  },
  'simd-threads': {
    glue: new URL('./wasm/kvasm-simd-threads.js', import.meta.url).href,
    wasm: new URL('./wasm/kvasm-simd-threads.wasm', import.meta.url).href,
  },
  'relaxed-simd': {
    glue: new URL('./wasm/kvasm-relaxed-simd.js', import.meta.url).href,
    wasm: new URL('./wasm/kvasm-relaxed-simd.wasm', import.meta.url).href,
  },
  'relaxed-simd-threads': {
    glue: new URL('./wasm/kvasm-relaxed-simd-threads.js', import.meta.url).href,
    wasm: new URL('./wasm/kvasm-relaxed-simd-threads.wasm', import.meta.url).href,
  },
};
