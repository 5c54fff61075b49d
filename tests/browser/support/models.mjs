import { access, mkdir, mkdtemp, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { convertToGqa } from '../../../scripts/convert-to-gqa.mjs';
import { makeCheckpoint } from '../../../scripts/fixtures/make-checkpoint.mjs';

export const repository = join(import.meta.dirname, '../../..');

const fileNames = ['model.safetensors', 'vocab.json', 'merges.txt', 'config.json'];

/** The folder of a made-up model of a named shape, made if it is not there yet. */
export function madeUpModel(shape) {
  return made(shape, aside => makeCheckpoint(aside, { shape }));
}

/** The same with one key/value head. */
export async function groupedModel(shape) {
  const plain = await madeUpModel(shape);
  return made(`${shape}-grouped`, aside => convertToGqa(plain, aside, 1));
}

async function made(name, make) {
  const models = join(repository, 'build/models');
  const folder = join(models, name);
  if (await isComplete(folder)) return folder;
  await mkdir(folder, { recursive: true });
  // Aside, because another test file may be making the same; whose files win does not matter, as they are equal.
  const aside = await mkdtemp(join(models, `${name}-`));
  try {
    await make(aside);
    for (const file of fileNames) await rename(join(aside, file), join(folder, file));
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
