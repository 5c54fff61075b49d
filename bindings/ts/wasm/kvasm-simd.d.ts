import type { WasmModuleFactory } from '../wasm-module.js';

// The file itself is built by scripts/build-wasm, straight into dist/wasm.
declare const createModule: WasmModuleFactory;
export default createModule;
