import { access, mkdir, mkdtemp, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { makeCheckpoint } from '../../../scripts/fixtures/make-checkpoint.mjs';

export const repository = join(import.meta.dirname, '../../..');

const fileNames = ['model.safetensors', 'vocab.json', 'merges.txt', 'config.json'];

/** The folder of a made-up model of a named shape, made if it is not there yet. */
export async function madeUpModel(shape) {
  const models = join(repository, 'build/models');
  const folder = join(models, shape);
  if (await isComplete(folder)) return folder;
  await mkdir(folder, { recursive: true });
  // Aside, because another test file may be making the same; whose files win does not matter, as they are equal.
  const aside = await mkdtemp(join(models, `${shape}-`));
  try {
    await makeCheckpoint(aside, { shape });
    for (const name of fileNames) await rename(join(aside, name), join(folder, name));
  } finally {
    await rm(aside, { recursive: true });
  }
  return folder;
}

async function isComplete(folder) {
  try {
    for (const name of fileNames) await access(join(folder, name));
    return true;
  } catch {
    return false;
  }
}
