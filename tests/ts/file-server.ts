import { vi } from 'vitest';

import { fakeWeights } from './fake-wasm-module.js';
import { config, merges, vocab } from './harness.js';

export const root = 'https://models.test/tiny';
export const weights = fakeWeights(5000);

export type Answer = () => Response | Promise<Response>;

/** A server of these files below `root`; what it does not have is 404. */
export function serveFiles(changes: Record<string, Answer | undefined> = {}): string[] {
  const asked: string[] = [];
  const files: Record<string, Answer | undefined> = {
    'config.json': () => new Response(config),
    'vocab.json': () => new Response(vocab),
    'merges.txt': () => new Response(merges),
    'model.safetensors': () => new Response(weights),
    ...changes,
  };
  vi.stubGlobal('fetch', async (url: string) => {
    const name = url.slice(root.length + 1);
    asked.push(name);
    return files[name]?.() ?? new Response('no', { status: 404, statusText: 'Not Found' });
  });
  return asked;
}
