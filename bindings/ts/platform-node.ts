import { stat } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { Worker } from 'node:worker_threads';

import { describe } from './describe.js';
import { errorFor, InvalidArgumentError } from './errors.js';
import type { Platform, WorkerHandle } from './platform.js';
import {
  describeThrown,
  type FileLocation,
  type ModelLocations,
  type WorkerMessage,
} from './protocol.js';
import {
  isAbsoluteUrl,
  isHubId,
  locateEach,
  locateFiles,
  locateInFolder,
  locateOnHub,
  parseUrl,
} from './source.js';
import type { LoadOptions, ModelSource } from './types.js';

export const nodePlatform: Platform = { spawn, resolveUrl, locate };

function spawn(workerUrl: string | undefined): WorkerHandle {
  const worker = makeWorker(workerUrl);
  let terminating = false;
  return {
    post: (message, transfer) => worker.postMessage(message, transfer),
    onMessage(listener) {
      worker.on('message', (message: WorkerMessage) => listener(message));
    },
    onFailure(listener) {
      worker.on('error', error => listener(describeThrown(error)));
      worker.on('messageerror', error => listener(describeThrown(error)));
      worker.on('exit', code => {
        if (!terminating) listener(`it exited with code ${code}`);
      });
    },
    setBusy(busy) {
      // While it ends, somebody may be waiting for just that.
      if (terminating) return;
      if (busy) worker.ref();
      else worker.unref();
    },
    async terminate() {
      terminating = true;
      await worker.terminate();
    },
  };
}

function makeWorker(workerUrl: string | undefined): Worker {
  try {
    const url = new URL(workerUrl ?? new URL('./worker-node.js', import.meta.url));
    // The flags that the process was started with, such as `--input-type`, are about its own script.
    return new Worker(url, { execArgv: [] });
  } catch (cause) {
    const reason = `The engine's worker could not be made (${describeThrown(cause)}).`;
    throw errorFor('load-failed', reason, { cause });
  }
}

async function locate(source: ModelSource, options: LoadOptions): Promise<ModelLocations> {
  if (source instanceof URL) return locateUrl(source);
  if (typeof source !== 'string') return locateFiles(source, locateText);
  if (isAbsoluteUrl(source)) return locateUrl(parseUrl('The model', source));
  if (await isDirectory(source)) return locateDirectory(source);
  // A path that exists wins over a hub id of the same letters.
  if (isHubId(source)) return locateOnHub(source, options);
  if (/[/\\]|^\.+$/.test(source)) {
    throw errorFor('load-failed', `There is no directory ${describe(source)}.`);
  }
  throw new InvalidArgumentError(
    `The model must be a directory, a URL or a hub id, not ${describe(source)}.`,
  );
}

/** A path counts as a URL here, since files of one's own are where such options point to. */
function resolveUrl(name: string, url: string | URL): string {
  if (typeof url === 'string' && !isAbsoluteUrl(url)) return pathToFileURL(resolve(url)).href;
  return parseUrl(name, url).href;
}

async function isDirectory(path: string): Promise<boolean> {
  try {
    return (await stat(path)).isDirectory();
  } catch {
    return false;
  }
}

function locateUrl(url: URL): ModelLocations {
  return url.protocol === 'file:' ? locateDirectory(fileURLToPath(url)) : locateInFolder(url);
}

function locateDirectory(path: string): ModelLocations {
  const directory = resolve(path);
  return locateEach(name => ({ kind: 'path', path: join(directory, name) }));
}

function locateText(text: string | URL): FileLocation {
  if (typeof text === 'string' && !isAbsoluteUrl(text)) {
    return { kind: 'path', path: resolve(text) };
  }
  const url = parseUrl('A file of the model', text);
  return url.protocol === 'file:'
    ? { kind: 'path', path: fileURLToPath(url) }
    : { kind: 'url', url: url.href };
}
