import { builds } from '../builds.js';
import { errorFor } from '../errors.js';
import type { WasmModuleFactory } from '../wasm-module.js';
import type { BuildPlatform } from './build.js';

/** Gets builds from the package's files. */
export function fetchBuild(
  compile: (wasmUrl: string) => Promise<WebAssembly.Module>,
): BuildPlatform['fetchBuild'] {
  return async (name, wasmUrl) => {
    const { glue, wasm } = builds[name];
    const [compiled, factory] = await Promise.all([compile(wasmUrl ?? wasm), importGlue(glue)]);
    return { compiled, factory };
  };
}

async function importGlue(url: string): Promise<WasmModuleFactory> {
  try {
    // By its URL, for the reason that builds.ts gives.
    const { default: factory } = (await import(
      /* @vite-ignore */ /* webpackIgnore: true */ url
    )) as { default: WasmModuleFactory };
    return factory;
  } catch (cause) {
    throw errorFor('load-failed', `${url} cannot be imported.`, { cause });
  }
}
