// The bench's models: one checkpoint with random weights, and the same weights in the peers' formats.

import { createHash } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { mkdir, readdir, rename, rm } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { makeGguf } from '../../scripts/fixtures/make-gguf.mjs';
import { makeBenchCheckpoint, openCheckpoint } from './checkpoint.mjs';
import { writeOnnx } from './onnx.mjs';
import { requirePeer } from './packages.mjs';

const MAKERS = ['checkpoint.mjs', 'onnx.mjs', 'onnx-matrices.mjs'].concat(
  ['make-checkpoint.mjs', 'make-gguf.mjs'].map(name => `../../scripts/fixtures/${name}`),
);
const FOLDER = new URL('../../build/peers/models/', import.meta.url);

/** Tells models apart that other versions of this code made. */
function version(shape) {
  const hash = createHash('sha256').update(shape);
  for (const name of MAKERS) hash.update(readFileSync(new URL(name, import.meta.url)));
  return hash.digest('hex').slice(0, 12);
}

/**
 * Makes the models that are not there yet, in build/peers/models.
 *
 * @param {string} shape as scripts/fixtures/make-checkpoint.mjs names it
 * @param {Iterable<string>} names of files: `checkpoint`, or a precision with its format's extension, as in `q8_0.gguf`
 * @returns {Promise<string>} their folder
 */
export async function makeModels(shape, names) {
  const current = `${shape}-${version(shape)}`;
  const folder = fileURLToPath(new URL(`${current}/`, FOLDER));
  await mkdir(folder, { recursive: true });
  for (const other of await readdir(FOLDER)) {
    const isOutdated = other.startsWith(`${shape}-`) && other !== current;
    if (isOutdated) await rm(new URL(other, FOLDER), { recursive: true });
  }
  const make = async (name, write) => {
    const path = folder + name;
    if (existsSync(path)) return;
    console.error(`peers: making ${name}`);
    // A name is there only when all of the file is.
    await write(`${path}.partial`);
    await rename(`${path}.partial`, path);
  };
  await rm(`${folder}checkpoint.partial`, { recursive: true, force: true });
  await make('checkpoint', path => makeBenchCheckpoint(path, { shape }));
  const checkpoint = await openCheckpoint(`${folder}checkpoint`);
  try {
    for (const name of new Set(names)) {
      const [precision, format] = name.split('.');
      if (format === 'gguf') {
        await make(name, path => makeGguf(`${folder}checkpoint`, path, { type: precision }));
      }
      if (format !== 'onnx') continue;
      const { onnx } = requirePeer('onnx-proto');
      await make(name, path => writeOnnx(path, checkpoint, precision, onnx));
    }
  } finally {
    await checkpoint.close();
  }
  return folder;
}
