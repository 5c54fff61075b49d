import { stat } from 'node:fs/promises';
import { basename, dirname, resolve } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { type Transferable as NodeTransferable, Worker } from 'node:worker_threads';

import { describe } from './describe.js';
import { errorFor, InvalidArgumentError } from './errors.js';
import { isWeights } from './model-files.js';
import type { Platform, WorkerHandle } from './platform.js';
import {
  describeThrown,
  type FileLocation,
  type ModelLocation,
  type WorkerMessage,
} from './protocol.js';
import { isAbsoluteUrl, isHubId, locateAtUrl, locateOnHub, parseUrl } from './source.js';
import type { LoadOptions } from './types.js';

export const nodePlatform: Platform = {
  spawn,
  resolveUrl,
  resolveDirectory: path => resolve(path),
  locateModel,
  locateModelAt,
  locateFile,
};

function spawn(workerUrl: string | undefined): WorkerHandle {
  const worker = makeWorker(workerUrl);
  let terminating = false;
  return {
    // Node's own type of the same things.
    post: (message, transfer) => worker.postMessage(message, transfer as NodeTransferable[]),
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

async function locateModel(source: string, options: LoadOptions): Promise<ModelLocation> {
  if (isAbsoluteUrl(source)) return locateModelAt(parseUrl('The model', source), options);
  // A path that exists wins over a hub id of the same letters.
  const local = await locateLocal(source, options);
  if (local) return local;
  if (isHubId(source)) return locateOnHub(source, options);
  if (/[/\\]|^\.+$/.test(source) || isWeights(source)) {
    throw errorFor('load-failed', `There is no directory or file of weights ${describe(source)}.`);
  }
  throw new InvalidArgumentError(
    `The model must be a directory, a URL or a hub id, not ${describe(source)}.`,
  );
}

function locateModelAt(url: URL, options: LoadOptions): ModelLocation {
  if (url.protocol !== 'file:') return locateAtUrl(url, options);
  const path = fileURLToPath(url);
  return isWeights(path) ? locateWeights(path) : { kind: 'directory', path, file: options.file };
}

async function locateLocal(path: string, options: LoadOptions): Promise<ModelLocation | undefined> {
  try {
    const found = await stat(path);
    if (found.isDirectory()) {
      return { kind: 'directory', path: resolve(path), file: options.file };
    }
  } catch {
    return undefined;
  }
  return isWeights(path) ? locateWeights(path) : undefined;
}

/** Weights, and what they need beside them. */
function locateWeights(path: string): ModelLocation {
  const full = resolve(path);
  return { kind: 'directory', path: dirname(full), file: basename(full) };
}

function locateFile(text: string | URL): FileLocation {
  if (typeof text === 'string' && !isAbsoluteUrl(text)) {
    return { kind: 'path', path: resolve(text) };
  }
  const url = parseUrl('A file of the model', text);
  return url.protocol === 'file:'
    ? { kind: 'path', path: fileURLToPath(url) }
    : { kind: 'url', url: url.href };
}

/** A path counts as a URL here, since files of one's own are where such options point to. */
function resolveUrl(name: string, url: string | URL): string {
  if (typeof url === 'string' && !isAbsoluteUrl(url)) return pathToFileURL(resolve(url)).href;
  return parseUrl(name, url).href;
}
