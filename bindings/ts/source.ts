/** Turns what a user gives as a model into files that the Worker can open. */

import { describe } from './describe.js';
import { InvalidArgumentError } from './errors.js';
import {
  type FileLocation,
  type ModelFileName,
  type ModelLocations,
  modelFileNames,
} from './protocol.js';
import type { LoadOptions, ModelFiles } from './types.js';

/** Whether a string is an absolute URL. One letter before the colon is a drive, as in `C:\models`. */
export function isAbsoluteUrl(text: string): boolean {
  return /^[a-z][a-z0-9+.-]+:/i.test(text);
}

/** Whether a string is `name` or `owner/name` as on the Hugging Face hub. */
export function isHubId(text: string): boolean {
  return /^[\w-][\w.-]*(\/[\w-][\w.-]*)?$/.test(text);
}

/** @throws InvalidArgumentError */
export function parseUrl(name: string, url: string | URL, base?: string | URL): URL {
  try {
    return new URL(url, base);
  } catch (cause) {
    throw new InvalidArgumentError(`${name} is not a URL: ${describe(String(url))}.`, { cause });
  }
}

/** A model's files in the folder that a URL names, with or without a slash at its end. A query is kept. */
export function locateInFolder(folder: URL): ModelLocations {
  return locateEach(name => {
    const file = new URL(folder);
    file.pathname = `${folder.pathname.replace(/\/$/, '')}/${name}`;
    return { kind: 'url', url: file.href };
  });
}

/** @throws InvalidArgumentError when `hubUrl` is not a URL. */
export function locateOnHub(id: string, options: LoadOptions): ModelLocations {
  const { hubUrl = 'https://huggingface.co', revision = 'main' } = options;
  const folder = parseUrl('hubUrl', hubUrl);
  const root = folder.pathname.replace(/\/$/, '');
  folder.pathname = `${root}/${id}/resolve/${encodeURIComponent(revision)}`;
  return locateInFolder(folder);
}

export function locateEach(locate: (name: ModelFileName) => FileLocation): ModelLocations {
  return Object.fromEntries(modelFileNames.map(name => [name, locate(name)]));
}

/**
 * Files that are given one by one; names that no model file has are ignored.
 * @param locateText For a file that is given as a string or a URL.
 * @throws InvalidArgumentError when a file is missing, or not of a FileSource's type.
 */
export function locateFiles(
  files: ModelFiles,
  locateText: (text: string | URL) => FileLocation,
): ModelLocations {
  if (typeof files !== 'object' || files === null || isContent(files)) {
    throw new InvalidArgumentError(
      'The model must be a URL, a hub id, a directory, or an object of files by name such as ' +
        `{ 'config.json': …, 'tokenizer.json': …, 'model.safetensors': … }, not ${describe(files)}.`,
    );
  }
  const locations: Partial<Record<ModelFileName, FileLocation>> = {};
  for (const name of modelFileNames) {
    const file: unknown = files[name];
    if (file !== undefined) locations[name] = locateFile(name, file, locateText);
  }
  const missing = missingFiles(locations);
  if (missing !== undefined) {
    throw new InvalidArgumentError(
      `The model's files lack ${missing}; given: ${Object.keys(files).join(', ') || 'none'}.`,
    );
  }
  return locations;
}

function isContent(value: object): boolean {
  return value instanceof Blob || value instanceof ArrayBuffer || ArrayBuffer.isView(value);
}

function missingFiles(locations: ModelLocations): string | undefined {
  if (!locations['config.json']) return 'config.json';
  if (!locations['model.safetensors']) return 'model.safetensors';
  if (locations['tokenizer.json']) return undefined;
  if (locations['vocab.json'] && locations['merges.txt']) return undefined;
  return 'tokenizer.json, or vocab.json and merges.txt';
}

function locateFile(
  name: string,
  file: unknown,
  locateText: (text: string | URL) => FileLocation,
): FileLocation {
  if (typeof file === 'string' || file instanceof URL) return locateText(file);
  if (file instanceof Blob) return { kind: 'blob', blob: file };
  // Copied, because it is transferred to the Worker, and because a view would be sent with all of its buffer.
  if (file instanceof ArrayBuffer) return { kind: 'bytes', bytes: new Uint8Array(file.slice(0)) };
  if (file instanceof Uint8Array) return { kind: 'bytes', bytes: new Uint8Array(file) };
  throw new InvalidArgumentError(
    `${name} must be a URL, a path (in Node), a Blob, an ArrayBuffer or a Uint8Array, ` +
      `not ${describe(file)}.`,
  );
}
