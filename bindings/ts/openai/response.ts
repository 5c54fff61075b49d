import type { EmbeddingEngine } from '../text-engine.js';
import type { ResponseBase } from './types.js';

/** Who answers: an engine under a name. */
export interface Server {
  readonly engine: EmbeddingEngine;
  readonly model: string;
}

/** What a response and its chunks have in common. */
export function newResponse(prefix: string, { engine, model }: Server): ResponseBase {
  // Not randomUUID, which browsers have in secure contexts only.
  const random = crypto.getRandomValues(new Uint8Array(12));
  const id = Array.from(random, byte => byte.toString(16).padStart(2, '0')).join('');
  return {
    id: `${prefix}-${id}`,
    created: Math.floor(Date.now() / 1000),
    model,
    system_fingerprint: engine.info.variant,
  };
}
