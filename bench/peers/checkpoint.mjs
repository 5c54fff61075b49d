// The one model that all engines run, and access to its tensors for writing it in their formats.

import { open, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { makeCheckpoint, makeVocabulary } from '../../scripts/fixtures/make-checkpoint.mjs';
import { readHeader } from '../../scripts/lib/safetensors.mjs';

const SEED = 7;

/**
 * The ids that the model must never draw: what is not printable ASCII may be a part of a UTF-8 character, at which
 * wllama's JSON layer dies; the end of the text would end a run early.
 */
export function mutedIds(tokens) {
  const isMuted = token => !/^[!-~Ġ]+$/.test(token) || token.startsWith('<|');
  return tokens.flatMap((token, id) => (isMuted(token) ? [id] : []));
}

/** Makes the checkpoint, in which muted ids have a row of zeros as their embedding: a logit of 0, far from the largest. */
export async function makeBenchCheckpoint(dir, shape) {
  const { config } = await makeCheckpoint(dir, { seed: SEED, ...shape });
  const file = await open(join(dir, 'model.safetensors'), 'r+');
  try {
    const { tensors } = await readHeader(file);
    const { begin } = tensors.find(({ name }) => name === 'wte.weight');
    const zeros = Buffer.alloc(config.n_embd * 4);
    for (const id of mutedIds(makeVocabulary(config.vocab_size).tokens)) {
      await file.write(zeros, 0, zeros.length, begin + id * zeros.length);
    }
  } finally {
    await file.close();
  }
}

/**
 * Opens a float32 checkpoint.
 * @returns {Promise<{ config: object, tensor: (name: string) => Promise<Float32Array>, close: () => Promise<void> }>}
 *   `config` as in config.json; `tensor` reads one, in the file's layout
 */
export async function openCheckpoint(dir) {
  const config = JSON.parse(await readFile(join(dir, 'config.json'), 'utf8'));
  const file = await open(join(dir, 'model.safetensors'));
  const { tensors } = await readHeader(file);
  const byName = new Map(tensors.map(tensor => [tensor.name, tensor]));
  return {
    config,
    async tensor(name) {
      const { begin, bytes } = byName.get(name);
      const values = new Float32Array(bytes / 4);
      await file.read(new Uint8Array(values.buffer), 0, bytes, begin);
      return values;
    },
    close: () => file.close(),
  };
}
