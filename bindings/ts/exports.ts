/** What both entries of the package export beside the Engine. */

export type { AttentionOptions, AttentionWeights } from './attention.js';
export type { CacheRecording } from './cache-recording.js';
export type { CacheBlock, CacheOwner, CacheSequence, CacheView } from './cache-view.js';
export {
  EngineClosedError,
  GenerationError,
  InvalidArgumentError,
  KvasmError,
  type KvasmErrorCode,
  ModelError,
} from './errors.js';
export { filesDropped } from './local-files.js';
export { isModelFile, missingModelFiles, modelFileNames } from './model-files.js';
export type { KeptFile, ModelCache } from './storage/model-cache.js';
export type * from './types.js';
