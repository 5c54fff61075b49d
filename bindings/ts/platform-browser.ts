import { BundledWorker } from './bundled-worker.js';
import { describe } from './describe.js';
import { errorFor, InvalidArgumentError } from './errors.js';
import type { Platform, WorkerHandle } from './platform.js';
import {
  describeThrown,
  type FileLocation,
  type ModelLocation,
  type WorkerMessage,
} from './protocol.js';
import { isAbsoluteUrl, isHubId, locateAtUrl, locateOnHub, parseUrl } from './source.js';
import type { LoadOptions } from './types.js';
import {
  packagedWorkerUrl,
  type StartedWorker,
  startAt,
  startEmbedded,
  startEmitted,
} from './worker-script.js';

export const browserPlatform: Platform = {
  spawn,
  resolveUrl,
  resolveDirectory,
  locateModel,
  locateModelAt: locateAtUrl,
  locateFile,
};

function spawn(workerUrl = packagedWorkerUrl): WorkerHandle {
  return workerUrl === undefined
    ? new BundledWorker(
        () => handleOf(startEmitted()),
        async () => handleOf(await startEmbedded()),
      )
    : handleOf(makeWorker(workerUrl));
}

function handleOf({ worker, explainFailure }: StartedWorker): WorkerHandle {
  let fail: (reason: string) => void = () => {};
  return {
    post: (message, transfer) => worker.postMessage(message, transfer),
    onMessage(listener) {
      worker.onmessage = (event: MessageEvent<WorkerMessage>) => listener(event.data);
    },
    onFailure(listener) {
      fail = listener;
      worker.onerror = event => {
        event.preventDefault();
        // A script that cannot be fetched is reported without a message.
        if (event.message) listener(event.message);
        else void explainFailure().then(listener);
      };
      worker.onmessageerror = () => listener('a message could not be read');
    },
    watch(lock) {
      const ended = () => fail('it was ended from outside');
      navigator.locks.request(lock, ended).catch(() => {});
    },
    setBusy() {},
    async terminate() {
      worker.terminate();
    },
  };
}

function makeWorker(workerUrl: string): StartedWorker {
  try {
    return startAt(workerUrl);
  } catch (cause) {
    const reason = `The engine's worker could not be made (${describeThrown(cause)}).`;
    throw errorFor('load-failed', reason, { cause });
  }
}

async function locateModel(source: string, options: LoadOptions): Promise<ModelLocation> {
  if (isAbsoluteUrl(source)) return locateAtUrl(parseUrl('The model', source), options);
  if (isHubId(source)) return locateOnHub(source, options);
  // What has neither a scheme nor the look of a hub id is relative to the page.
  if (source.includes('/')) return locateAtUrl(parseUrl('The model', source, baseUrl()), options);
  throw new InvalidArgumentError(
    `The model must be a URL (a relative one starts with "./", "../" or "/"), or a hub id, ` +
      `not ${describe(source)}.`,
  );
}

function locateFile(text: string | URL): FileLocation {
  return { kind: 'url', url: parseUrl('A file of the model', text, baseUrl()).href };
}

function resolveDirectory(path: string): string {
  throw new InvalidArgumentError(
    `storage must be 'auto', 'opfs', 'cache-api', 'off' or a ModelStore in a browser, ` +
      `not the directory ${describe(path)}.`,
  );
}

function resolveUrl(name: string, url: string | URL): string {
  return parseUrl(name, url, baseUrl()).href;
}

function baseUrl(): string {
  return typeof document === 'undefined' ? location.href : document.baseURI;
}
