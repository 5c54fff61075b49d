/** Turns what a user gives as a model into what the Worker can open. */

import { describe } from './describe.js';
import { errorFor, InvalidArgumentError } from './errors.js';
import { filesDropped, filesIn } from './local-files.js';
import { chooseWeights, isModelFile, isWeights, missingModelFiles } from './model-files.js';
import type { FileLocation, ModelLocation } from './protocol.js';
import { serveObject, streamObject } from './remote.js';
import type { FileSource, LoadOptions, ModelFiles, ModelSource } from './types.js';

/** What a string means depends on the platform. */
export interface Places {
  /** @throws InvalidArgumentError, ModelError `load-failed` */
  locateModel(text: string, options: LoadOptions): Promise<ModelLocation>;
  locateModelAt(url: URL, options: LoadOptions): ModelLocation;
  /** @throws InvalidArgumentError */
  locateFile(text: string | URL): FileLocation;
}

/** Whether a string is an absolute URL. One letter before the colon is a drive, as in `C:\models`. */
export function isAbsoluteUrl(text: string): boolean {
  return /^[a-z][a-z0-9+.-]+:/i.test(text);
}

/** Whether a string is `name` or `owner/name` as on the Hugging Face hub, perhaps with `@revision`, and no file's name. */
export function isHubId(text: string): boolean {
  return !isWeights(text) && /^[\w-][\w.-]*(\/[\w-][\w.-]*)?(@[^@\s]+)?$/.test(text);
}

/** @throws InvalidArgumentError */
export function parseUrl(name: string, url: string | URL, base?: string | URL): URL {
  try {
    return new URL(url, base);
  } catch (cause) {
    throw new InvalidArgumentError(`${name} is not a URL: ${describe(String(url))}.`, { cause });
  }
}

/** @throws InvalidArgumentError when `hubUrl` is not a URL, or two revisions are named. */
export function locateOnHub(text: string, options: LoadOptions): ModelLocation {
  const [id = '', named] = text.split('@');
  const { revision = named, file } = options;
  if (named !== undefined && revision !== named) {
    throw new InvalidArgumentError(
      `The model names the revision ${describe(named)}, and the option revision ${describe(revision)}.`,
    );
  }
  return { kind: 'hub', hubUrl: hubOf(options).href, id, revision: revision ?? 'main', file };
}

/**
 * A model in a folder, by the folder's URL or by that of its weights; on the hub also by the address of a model's page, or
 * of something on it.
 */
export function locateAtUrl(url: URL, options: LoadOptions): ModelLocation {
  const hub = hubOf(options);
  const root = hub.pathname.replace(/\/$/, '');
  if (url.origin === hub.origin && url.pathname.startsWith(`${root}/`)) {
    const path = decodeURI(url.pathname.slice(root.length + 1)).replace(/\/$/, '');
    const page = /^([\w.-]+\/[\w.-]+)(?:\/(?:tree|blob|resolve)\/([^/]+)(?:\/(.+))?)?$/.exec(path);
    if (page?.[1] !== undefined && !/^(api|datasets|spaces|models|docs)\//.test(path)) {
      const [, id, revision, file] = page;
      return locateOnHub(id, {
        ...options,
        ...(revision !== undefined && { revision: decodeURIComponent(revision) }),
        ...(file !== undefined && isWeights(file) && { file }),
      });
    }
  }
  const name = decodeURIComponent(url.pathname.slice(url.pathname.lastIndexOf('/') + 1));
  if (!isWeights(name)) return { kind: 'folder', url: url.href, file: options.file };
  const folder = new URL(url);
  folder.pathname = url.pathname.slice(0, url.pathname.lastIndexOf('/') + 1);
  return { kind: 'folder', url: folder.href, file: options.file ?? name };
}

/** The URL of a file in a folder. */
export function urlInFolder(folder: string, name: string): string {
  const file = new URL(folder);
  const path = name.split('/').map(encodeURIComponent).join('/');
  file.pathname = `${file.pathname.replace(/\/$/, '')}/${path}`;
  return file.href;
}

function hubOf({ hubUrl = 'https://huggingface.co' }: LoadOptions): URL {
  return parseUrl('hubUrl', hubUrl);
}

/** @throws InvalidArgumentError, ModelError `load-failed` */
export async function locateModel(
  source: ModelSource,
  options: LoadOptions,
  places: Places,
): Promise<ModelLocation> {
  if (typeof source === 'string') return places.locateModel(source, options);
  if (source instanceof URL) return places.locateModelAt(source, options);
  if (isContent(source)) {
    return locateFiles({ [nameOf(source)]: source }, options, places);
  }
  // A drop is over with the first pause, so it is read before any.
  const files = filesDropped(source) ?? filesIn(source);
  if (files) return locateFiles(byName(await files), options, places);
  if (typeof source !== 'object' || source === null || ArrayBuffer.isView(source)) {
    throw new InvalidArgumentError(
      'The model must be a URL, a hub id, a directory, the bytes of a GGUF file, a list of files, or an object of ' +
        `files by name such as { 'config.json': …, 'tokenizer.json': …, 'model.safetensors': … }, ` +
        `not ${describe(source)}.`,
    );
  }
  return locateFiles(source as ModelFiles, options, places);
}

function locateFiles(given: ModelFiles, options: LoadOptions, places: Places): ModelLocation {
  const { file } = options;
  const names = Object.keys(given).filter(
    name => given[name] !== undefined && (isModelFile(name) || name === file),
  );
  const missing = missingModelFiles(names, file);
  if (missing.length > 0) {
    throw new InvalidArgumentError(
      `The model's files lack ${missing.join(', ')}; given: ${Object.keys(given).join(', ') || 'none'}.`,
    );
  }
  const weights = file ?? chooseWeights(names, 'The list of files');
  const files: Record<string, FileLocation> = {};
  for (const name of names) files[name] = locateFile(name, given[name], places);
  return { kind: 'files', files, file: weights };
}

type Content = Exclude<FileSource, string | URL>;

function isContent(value: unknown): value is Content {
  return (
    value instanceof Blob ||
    value instanceof ArrayBuffer ||
    value instanceof Uint8Array ||
    value instanceof Response ||
    value instanceof ReadableStream
  );
}

/** What has no name of its own is GGUF, which alone needs no other file. */
function nameOf(content: Content): string {
  const name =
    content instanceof Response
      ? content.url.replace(/[?#].*$/, '').replace(/^.*\//, '')
      : 'name' in content && typeof content.name === 'string'
        ? content.name
        : '';
  return isModelFile(name) ? name : 'model.gguf';
}

function byName(files: readonly File[]): ModelFiles {
  const depth = (file: File) => (file.webkitRelativePath ?? '').split('/').length;
  const named: Record<string, File> = {};
  for (const file of [...files].sort((a, b) => depth(a) - depth(b))) named[file.name] ??= file;
  return named;
}

function locateFile(name: string, file: unknown, places: Places): FileLocation {
  if (typeof file === 'string' || file instanceof URL) return places.locateFile(file);
  if (file instanceof Blob) return { kind: 'blob', blob: file };
  // Copied, because it is transferred to the Worker, and because a view would be sent with all of its buffer.
  if (file instanceof ArrayBuffer) return { kind: 'bytes', bytes: new Uint8Array(file.slice(0)) };
  if (file instanceof Uint8Array) return { kind: 'bytes', bytes: new Uint8Array(file) };
  if (file instanceof Response) return locateResponse(name, file);
  if (file instanceof ReadableStream) return locateStream(name, file, undefined);
  throw new InvalidArgumentError(
    `${name} must be a URL, a path (in Node), a Blob, an ArrayBuffer, a Uint8Array, a Response or a ReadableStream, ` +
      `not ${describe(file)}.`,
  );
}

function locateResponse(name: string, response: Response): FileLocation {
  if (!response.ok) {
    const status = `HTTP status ${response.status} ${response.statusText}`.trim();
    throw errorFor('load-failed', `${name}: the response is an error (${status}).`);
  }
  if (!response.body) throw new InvalidArgumentError(`${name}: the response has no body.`);
  return locateStream(name, response.body, announcedSize(response.headers));
}

function locateStream(
  name: string,
  stream: ReadableStream<Uint8Array>,
  size: number | undefined,
): FileLocation {
  if (stream.locked) throw new InvalidArgumentError(`${name}: the stream is being read already.`);
  const { port1, port2 } = new MessageChannel();
  serveObject(port1, streamObject(stream));
  return { kind: 'stream', port: port2, size };
}

/** The length of what a response yields; the header of a compressed one tells of the compressed bytes. */
export function announcedSize(headers: Headers): number | undefined {
  const length = headers.get('content-length');
  if (length === null || headers.has('content-encoding')) return undefined;
  const size = Number(length);
  return Number.isSafeInteger(size) && size > 0 ? size : undefined;
}
