import { access } from 'node:fs/promises';
import { join } from 'node:path';
import { makeCheckpoint } from '../../../scripts/fixtures/make-checkpoint.mjs';

export const repository = join(import.meta.dirname, '../../..');

/** The folder of a made-up model of a named shape, made if it is not there yet. */
export async function madeUpModel(shape) {
  const folder = join(repository, 'build/models', shape);
  const isThere = await Promise.all(
    ['config.json', 'vocab.json', 'merges.txt', 'model.safetensors'].map(name =>
      access(join(folder, name)).then(
        () => true,
        () => false,
      ),
    ),
  );
  if (isThere.includes(false)) await makeCheckpoint(folder, { shape });
  return folder;
}
