import type { MemoryReport } from '../types.js';
import type { LoadedModel } from './load.js';

export function reportMemory({ module, engine }: LoadedModel): MemoryReport {
  const memory = engine.memory();
  return {
    weights: memory.weights,
    activations: memory.activations,
    kv: {
      reserved: memory.kvReserved,
      used: memory.kvUsed,
      shared: memory.kvShared,
      cached: memory.kvCached,
      perToken: memory.kvPerToken,
      tokens: memory.kvTokens,
    },
    prefix: engine.prefixStats(),
    heap: module.HEAPU8.byteLength,
  };
}
