/** Which WebAssembly build runs, with how many threads, and why. */

import type { BuildName } from '../builds.js';
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
  /**
   * @param wasmUrl Where the module is, if not where the platform has it.
   * @throws ModelError `load-failed`
   */
  fetchBuild(name: BuildName, wasmUrl: string | undefined): Promise<FetchedBuild>;
  startThread(): ThreadHandle;
  /** Why there is no build but `simd`, if so. */
  readonly onlyPlainSimd?: string;
  /** As the machine says. */
  readonly processors: number | undefined;
}

/** A build's module, compiled, and the Emscripten glue that instantiates it. */
export interface FetchedBuild {
  readonly compiled: WebAssembly.Module;
  readonly factory: WasmModuleFactory;
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
  const { processors, onlyPlainSimd } = platform;
  let plan = planThreads(threads, processors, onlyPlainSimd ?? whyMemoryIsNotShared(features));
  const start = async (variant: Variant) => {
    // A memory holds one instance's data, so each start has its own.
    const memory = plan.threads > 1 ? createSharedMemory() : undefined;
    const name: BuildName = memory ? `${variant}-threads` : variant;
    const url = wasmUrl === undefined ? undefined : new URL(`kvasm-${name}.wasm`, wasmUrl).href;
    const { compiled, factory } = await platform.fetchBuild(name, url);
    return { compiled, memory, module: await instantiate(factory, compiled, memory) };
  };
  const noRelaxedSimd = features.relaxedSimd
    ? undefined
    : 'this JavaScript engine has no relaxed SIMD';
  const obstacle = onlyPlainSimd ?? noRelaxedSimd;
  const { instance, variant, reason } = await chooseVariant(asked, obstacle, start);
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
  noRelaxedSimd: string | undefined,
  start: (variant: Variant) => Promise<Instance>,
): Promise<Chosen<Instance>> {
  const obstacle = noRelaxedSimd ?? 'this JavaScript engine computes wrong with relaxed SIMD';
  if (asked !== 'simd' && noRelaxedSimd === undefined) {
    const instance = await start('relaxed-simd');
    if (instance.module.relaxedSimdWorks?.()) {
      const reason = asked ? `variant is '${asked}'` : 'relaxed SIMD is there, and works';
      return { instance, variant: 'relaxed-simd', reason };
    }
  }
  if (asked === 'relaxed-simd') {
    throw errorFor('unsupported', `The variant '${asked}' cannot be used: ${obstacle}.`);
  }
  const reason = asked ? `variant is '${asked}'` : obstacle;
  return { instance: await start('simd'), variant: 'simd', reason };
}
