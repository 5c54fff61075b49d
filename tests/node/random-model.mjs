// Models with random weights, made aside and read back.

import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { makeCheckpoint } from '../../scripts/fixtures/make-checkpoint.mjs';

/** config.json and model.safetensors of a random model of this shape. */
export async function randomModel(shape) {
  const folder = await mkdtemp(join(tmpdir(), 'kvasm-model-'));
  try {
    await makeCheckpoint(folder, { std: 0.2, ...shape });
    const [config, weights] = await Promise.all([
      readFile(join(folder, 'config.json'), 'utf8'),
      readFile(join(folder, 'model.safetensors')),
    ]);
    return { config, weights };
  } finally {
    await rm(folder, { recursive: true });
  }
}
