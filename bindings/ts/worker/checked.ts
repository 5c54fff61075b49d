import type { WasmSequence } from '../wasm-module.js';
import { checkStatus } from './load.js';

/**
 * A sequence whose start was well; frees it otherwise.
 * @throws what its status stands for
 */
export function checked(sequence: WasmSequence): WasmSequence {
  const status = sequence.status();
  if (status.code !== '') sequence.delete();
  checkStatus(status);
  return sequence;
}
