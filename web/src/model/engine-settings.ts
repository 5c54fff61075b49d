import type { LoadOptions } from 'kvasm';

/** How a model is loaded; what is left out is the model's or the engine's own. */
export type EngineSettings = Readonly<
  Pick<LoadOptions, 'window' | 'dtype' | 'kvDtype' | 'contextLength'>
>;

/** Whether two say the same. */
export function sameSettings(one: EngineSettings, other: EngineSettings): boolean {
  return (
    one.window === other.window &&
    (one.dtype ?? 'q8') === (other.dtype ?? 'q8') &&
    (one.kvDtype ?? 'f32') === (other.kvDtype ?? 'f32') &&
    one.contextLength === other.contextLength
  );
}
