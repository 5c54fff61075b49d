import type { HubModel, HubOptions, HubServer } from '../support/hub-server.mjs';
import { startHub } from '../support/hub-server.mjs';
import { type FakeWasm, fakeWeights } from './fake-wasm-module.js';
import { config, merges, vocab } from './harness.js';

export const modelId = 'someone/tiny';
export const weights = fakeWeights(5000);
export const weightsFile = 'model.safetensors';

export function tinyModel(changes: Record<string, string | Uint8Array | undefined> = {}): HubModel {
  const files = {
    'README.md': '# tiny',
    'config.json': config,
    'vocab.json': vocab,
    'merges.txt': merges,
    [weightsFile]: weights,
    ...changes,
  };
  const given = Object.entries(files).filter(([, content]) => content !== undefined);
  return {
    commit: 'c0ffee',
    files: Object.fromEntries(given) as HubModel['files'],
    lfs: given.map(([name]) => name).filter(name => /\.safetensors$/.test(name)),
  };
}

export function startTinyHub(options: Partial<HubOptions> = {}): Promise<HubServer> {
  return startHub({ models: { [modelId]: tinyModel() }, ...options });
}

/** The weights that a fake module was given, as far as it has come. */
export function receivedBy(wasm: FakeWasm): Uint8Array {
  return Uint8Array.from(wasm.received);
}
