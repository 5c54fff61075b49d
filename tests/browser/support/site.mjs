import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { build } from 'vite';
import { groupedModel, madeUpModel, repository } from './models.mjs';
import { serve } from './static-server.mjs';

/** The settings of the tiny model, which the tests' numbers are checked against. */
export const tiny = { nLayer: 2, nKvHead: 2, headDim: 16, nPositions: 256 };

/**
 * Builds the site as it is deployed. To a folder of its own, so that no test sees a build of yesterday, nor files that
 * test at the same time each other's.
 */
export async function buildSite() {
  const folder = await mkdtemp(join(tmpdir(), 'kvasm-site-'));
  await build({
    configFile: join(repository, 'web/vite.config.ts'),
    logLevel: 'warn',
    build: { outDir: folder, emptyOutDir: true },
  });
  return { folder, remove: () => rm(folder, { recursive: true }) };
}

/** Serves a built site with the tiny model as its bundled one, whatever models this machine has. */
export async function serveSite(folder, options = {}) {
  const models = [
    { id: 'tiny', name: 'Tiny', random: true, folder: 'models/tiny/', bytes: 202_496 },
    {
      id: 'tiny-grouped',
      name: 'Tiny, one key/value head',
      random: true,
      folder: 'models/tiny-grouped/',
      bytes: 0,
      forLesson: true,
    },
  ];
  return await serve({
    folders: {
      '/models/tiny/': await madeUpModel('tiny'),
      '/models/tiny-grouped/': await groupedModel('tiny'),
      '/': folder,
    },
    texts: { '/models.json': JSON.stringify({ models }) },
    ...options,
  });
}
