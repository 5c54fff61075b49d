/** Which WebAssembly build runs, with how many threads, and why. */

import { type BuildName, builds } from '../builds.js';
import { errorFor } from '../errors.js';
import type { BuildOptions } from '../protocol.js';
import type { Variant } from '../types.js';
import type { WasmModule, WasmModuleFactory, WasmThreads } from '../wasm-module.js';
import { detectFeatures, whyMemoryIsNotShared } from './features.js';
import { instantiate } from './instantiate.js';
import { createSharedMemory } from './shared-memory.js';
import type { ThreadHandle } from './thread-protocol.js';
import { planThreads, startThreads } from './threads.js';

/** What differs between browsers and Node. */
export interface BuildPlatform {
  /** @throws ModelError `load-failed` */
  compile(wasmUrl: string): Promise<WebAssembly.Module>;
  startThread(): ThreadHandle;
  /** As the machine says. */
  readonly processors: number | undefined;
}

/** A running instance. */
export interface Build {
  readonly module: WasmModule;
  readonly variant: Variant;
  readonly variantReason: string;
  readonly threads: number;
  readonly threadsReason: string;
  /** What is less than was asked for, if something is. */
  readonly warning: string | undefined;
  /** Resolves with the reason if a thread dies. */
  readonly died: Promise<string>;
}

/** A machine that is busy starts Workers slowly; one thread fewer is no calamity, and neither is a load that waits. */
const threadTimeout = 10_000;

/**
 * The fastest build that works here, within what the options ask for.
 * @throws ModelError `unsupported` for a browser without SIMD, or without the variant asked for; `load-failed`.
 *   GenerationError `out-of-memory`
 */
export async function createBuild(
  { variant: asked, threads, wasmUrl }: BuildOptions,
  platform: BuildPlatform,
  detect = detectFeatures,
): Promise<Build> {
  const features = detect();
  if (!features.simd) {
    const needed = 'kvasm needs WebAssembly with SIMD (vectors of 128 bits)';
    throw errorFor('unsupported', `${needed}, which this JavaScript engine does not have.`);
  }
  const { processors } = platform;
  let plan = planThreads(threads, processors, whyMemoryIsNotShared(features));
  const start = async (variant: Variant) => {
    // A memory holds one instance's data, so each start has its own.
    const memory = plan.threads > 1 ? createSharedMemory() : undefined;
    const name: BuildName = memory ? `${variant}-threads` : variant;
    const { glue, wasm } = builds[name];
    const [compiled, factory] = await Promise.all([
      platform.compile(wasmUrl === undefined ? wasm : new URL(`kvasm-${name}.wasm`, wasmUrl).href),
      importGlue(glue),
    ]);
    return { compiled, memory, module: await instantiate(factory, compiled, memory) };
  };
  const { instance, variant, reason } = await chooseVariant(asked, features.relaxedSimd, start);
  const { module, compiled, memory } = instance;
  let died = new Promise<string>(() => {});
  if (memory) {
    const started = await startThreads(
      { module: module as WasmModule & WasmThreads, compiled, memory },
      plan.threads - 1,
      processors,
      () => platform.startThread(),
      threadTimeout,
    );
    died = started.died;
    if (started.reason !== undefined) {
      plan = { threads: started.threads, reason: started.reason, disappoints: true };
    }
  } else if (plan.threads > 1) {
    const reason = 'no shared WebAssembly memory was granted, not even one of 512 MB at the most';
    plan = { threads: 1, reason, disappoints: true };
  }
  const count = plan.threads === 1 ? '1 thread computes' : `${plan.threads} threads compute`;
  return {
    module,
    variant,
    variantReason: reason,
    threads: plan.threads,
    threadsReason: plan.reason,
    warning: plan.disappoints ? `Only ${count}: ${plan.reason}.` : undefined,
    died,
  };
}

interface Chosen<Instance> {
  readonly instance: Instance;
  readonly variant: Variant;
  readonly reason: string;
}

async function chooseVariant<Instance extends { readonly module: WasmModule }>(
  asked: Variant | undefined,
  hasRelaxedSimd: boolean,
  start: (variant: Variant) => Promise<Instance>,
): Promise<Chosen<Instance>> {
  let obstacle = 'this JavaScript engine has no relaxed SIMD';
  if (asked !== 'simd' && hasRelaxedSimd) {
    const instance = await start('relaxed-simd');
    if (instance.module.relaxedSimdWorks?.()) {
      const reason = asked ? `variant is '${asked}'` : 'relaxed SIMD is there, and works';
      return { instance, variant: 'relaxed-simd', reason };
    }
    obstacle = 'this JavaScript engine computes wrong with relaxed SIMD';
  }
  if (asked === 'relaxed-simd') {
    throw errorFor('unsupported', `The variant '${asked}' cannot be used: ${obstacle}.`);
  }
  const reason = asked ? `variant is '${asked}'` : obstacle;
  return { instance: await start('simd'), variant: 'simd', reason };
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
