import type { KvDtype, LoadOptions, WeightDtype } from '../types.js';
import { parseNumber } from './usage-error.js';

/** Flags about the engine that a model is loaded into, which several commands have. */
export const engineFlags = {
  window: { type: 'string' },
  dtype: { type: 'string' },
  'kv-dtype': { type: 'string' },
  'kv-bytes': { type: 'string' },
} as const;

/** All but `--kv-bytes`, which means something else where requests come at once. */
export const engineHelp = `\
  --window N          keys that a token sees: its own and the latest; default: all
  --dtype TYPE        q8 (default), q4 or f32: how the weights are stored
  --kv-dtype TYPE     f32 (default), f16 or q8: how keys and values are stored
`;

/**
 * Names are checked, with all other options, by the engine.
 * @param flags What was given.
 * @throws UsageError
 */
export function engineOptions(
  flags: Readonly<Partial<Record<keyof typeof engineFlags, string | undefined>>>,
): Pick<LoadOptions, 'window' | 'dtype' | 'kvDtype' | 'kvBytes'> {
  const { window, dtype, 'kv-dtype': kvDtype, 'kv-bytes': kvBytes } = flags;
  return {
    ...(window !== undefined && { window: parseNumber('window', window) }),
    ...(kvBytes !== undefined && { kvBytes: parseNumber('kv-bytes', kvBytes) }),
    ...(dtype !== undefined && { dtype: dtype as WeightDtype }),
    ...(kvDtype !== undefined && { kvDtype: kvDtype as KvDtype }),
  };
}
