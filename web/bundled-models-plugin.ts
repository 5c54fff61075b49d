/** Puts the models of this repository beside the page, and a list of them into models.json. */

import { createReadStream } from 'node:fs';
import { copyFile, mkdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { missingModelFiles, modelFileNames } from 'kvasm';
import type { Plugin } from 'vite';
import { convertToGqa } from '../scripts/convert-to-gqa.mjs';
import type { BundledModel } from './src/model/bundled-models.ts';

const repository = join(import.meta.dirname, '..');

// In order of preference; only the first that is complete is offered.
const candidates = [
  { id: 'fairy-tale', name: 'Fairy tale', random: false, folder: 'models/fairy-tale' },
  { id: 'tiny', name: 'Tiny, random weights', random: true, folder: 'build/models/tiny' },
];

interface FoundModel {
  readonly listed: BundledModel;
  /** Where each of its files is on disk. */
  readonly files: ReadonlyMap<string, string>;
}

export function bundledModels(): Plugin {
  let found: FoundModel[] = [];
  return {
    name: 'kvasm-bundled-models',

    async buildStart() {
      found = await findModels();
    },

    configureServer(server) {
      server.middlewares.use(async (request, response, next) => {
        const { pathname } = new URL(request.url ?? '/', 'http://localhost');
        // Looked up anew each time, so that a model that has just been trained needs no restart.
        const models = await findModels();
        if (pathname === '/models.json') {
          response.setHeader('Content-Type', 'application/json').end(listOf(models));
          return;
        }
        const file = fileFor(models, pathname);
        if (file === undefined) return next();
        response.setHeader('Content-Length', (await stat(file)).size);
        createReadStream(file).on('error', next).pipe(response);
      });
    },

    generateBundle() {
      this.emitFile({ type: 'asset', fileName: 'models.json', source: listOf(found) });
    },

    async writeBundle({ dir }) {
      if (dir === undefined) return;
      // Not as assets, which would be read into memory whole.
      for (const { listed, files } of found) {
        await mkdir(join(dir, listed.folder), { recursive: true });
        for (const [name, path] of files) await copyFile(path, join(dir, listed.folder, name));
      }
    },
  };
}

async function findModels(): Promise<FoundModel[]> {
  for (const { id, name, random, folder } of candidates) {
    const model = await findModel({ id, name, random }, join(repository, folder));
    if (!model) continue;
    const grouped = await findModel(
      { id: `${id}-grouped`, name: `${name}, one key/value head`, random, forLesson: true },
      await groupedTwin(id, join(repository, folder)),
    );
    return grouped ? [model, grouped] : [model];
  }
  return [];
}

async function findModel(
  about: Pick<BundledModel, 'id' | 'name' | 'random' | 'forLesson'>,
  folder: string,
): Promise<FoundModel | undefined> {
  const files = new Map<string, string>();
  let bytes = 0;
  for (const fileName of modelFileNames) {
    const path = join(folder, fileName);
    const size = await sizeOf(path);
    if (size === undefined) continue;
    files.set(fileName, path);
    if (fileName === 'model.safetensors') bytes = size;
  }
  if (missingModelFiles(files.keys()).length > 0) return undefined;
  return { listed: { ...about, folder: `models/${about.id}/`, bytes }, files };
}

/** The folder of the same model with one key/value head for all query heads, made if it is older than the model. */
async function groupedTwin(id: string, folder: string): Promise<string> {
  const twin = join(repository, 'build/models', `${id}-grouped`);
  const weights = 'model.safetensors';
  if ((await timeOf(join(twin, weights))) < (await timeOf(join(folder, weights))))
    await convertToGqa(folder, twin, 1);
  return twin;
}

async function timeOf(path: string): Promise<number> {
  try {
    return (await stat(path)).mtimeMs;
  } catch {
    return 0;
  }
}

async function sizeOf(path: string): Promise<number | undefined> {
  try {
    return (await stat(path)).size;
  } catch {
    return undefined;
  }
}

function listOf(models: readonly FoundModel[]): string {
  return JSON.stringify({ models: models.map(({ listed }) => listed) }, null, 2);
}

function fileFor(models: readonly FoundModel[], pathname: string): string | undefined {
  for (const { listed, files } of models) {
    const prefix = `/${listed.folder}`;
    if (pathname.startsWith(prefix)) return files.get(pathname.slice(prefix.length));
  }
  return undefined;
}
