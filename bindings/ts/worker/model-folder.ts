import type { DownloadRequest, FileLocation, ModelLocation } from '../protocol.js';
import { urlInFolder } from '../source.js';
import { askHub, type HubFile, hubHeaders, readListing } from './download/hub.js';
import { type Downloads, openRemote } from './download/remote-file.js';
import type { FileOpener, MissingFile, OpenFile } from './files.js';

/** The files of one model, wherever they are. */
export interface ModelFolder {
  /** For messages. */
  readonly where: string;
  /** What is there; undefined where only asking for a file tells. */
  readonly names: readonly string[] | undefined;
  sizeOf(name: string): number | undefined;
  /** @throws ModelError `load-failed` when it cannot be told whether the file is there, or cannot be read. */
  find(name: string): Promise<OpenFile | MissingFile>;
  /** All that was needed was found. */
  loaded?(): Promise<void>;
}

export interface FolderContext {
  readonly download: DownloadRequest;
  readonly downloads: Downloads;
  readonly openFile: FileOpener;
  readonly listDirectory: (path: string) => Promise<readonly string[]>;
}

/** @throws ModelError `load-failed` */
export async function openModelFolder(
  location: ModelLocation,
  context: FolderContext,
): Promise<ModelFolder> {
  switch (location.kind) {
    case 'hub':
      return openHub(location, context);
    case 'folder':
      return new UrlFolder(location.url, context);
    case 'directory': {
      const { path } = location;
      const names = await context.listDirectory(path);
      return listed(path, names, name =>
        context.openFile(name, { kind: 'path', path: `${path.replace(/[/\\]$/, '')}/${name}` }),
      );
    }
    case 'files': {
      const { files } = location;
      const where = 'The list of files';
      return listed(where, Object.keys(files), name => openGiven(name, files[name], context));
    }
  }
}

/** A folder of a server that does not list it. While that can't be reached, there is what there was the last time. */
class UrlFolder implements ModelFolder {
  readonly where: string;
  readonly names = undefined;
  readonly #context: FolderContext;
  readonly #identity: string;
  readonly #found: string[] = [];

  constructor(url: string, context: FolderContext) {
    this.where = url;
    this.#context = context;
    this.#identity = `folder:${url}`;
  }

  sizeOf(): undefined {}

  async find(name: string): Promise<OpenFile | MissingFile> {
    const url = urlInFolder(this.where, name);
    try {
      const file = await openUrl(url, this.where, name, this.#context);
      if (!('missing' in file)) this.#found.push(name);
      return file;
    } catch (error) {
      const list = await this.#context.downloads.cache?.readList(this.#identity);
      if (list === undefined || list.split('\n').includes(name)) throw error;
      return { label: url, missing: 'it was not there the last time' };
    }
  }

  async loaded(): Promise<void> {
    const { cache } = this.#context.downloads;
    const list = [...new Set(this.#found)].sort().join('\n');
    if (!cache || (await cache.readList(this.#identity)) === list) return;
    await cache.writeList(this.#identity, this.where, list);
  }
}

function listed(
  where: string,
  names: readonly string[],
  open: (name: string) => Promise<OpenFile | MissingFile>,
): ModelFolder {
  const find = async (name: string) =>
    names.includes(name) ? open(name) : { label: name, missing: `not in ${where}` };
  return { where, names, sizeOf: () => undefined, find };
}

async function openGiven(
  name: string,
  file: FileLocation | undefined,
  context: FolderContext,
): Promise<OpenFile | MissingFile> {
  if (!file) return { label: name, missing: 'not given' };
  if (file.kind !== 'url') return context.openFile(name, file);
  return openUrl(file.url, new URL('.', file.url).href, name, context);
}

function openUrl(
  url: string,
  model: string,
  file: string,
  { download, downloads }: FolderContext,
): Promise<OpenFile | MissingFile> {
  const unknown = { size: undefined, identity: undefined };
  const sha256 = download.sha256[file];
  return openRemote({ url, model, file, headers: {}, isHub: false, sha256, ...unknown }, downloads);
}

async function openHub(
  location: ModelLocation & { kind: 'hub' },
  context: FolderContext,
): Promise<ModelFolder> {
  const { id } = location;
  const { download, downloads } = context;
  const { listing, kept } = await listOnHub(location, context);
  const { folder, files } = readListing(location, listing);
  return {
    where: id,
    names: files && [...files.keys()],
    sizeOf: name => files?.get(name)?.size,
    async find(name) {
      const known = files?.get(name);
      if (files && !known) return { label: `${id}/${name}`, missing: 'the hub does not list it' };
      const file = {
        url: urlInFolder(folder, name),
        model: id,
        file: name,
        headers: hubHeaders(download.hubToken),
        isHub: true,
        sha256: download.sha256[name] ?? known?.sha256,
        size: known?.size,
        identity: identityOf(known),
      };
      return openRemote(file, downloads);
    },
    async loaded() {
      const { cache } = downloads;
      if (!cache || !files || listing === kept) return;
      await cache.writeList(listIdentity(location), id, listing);
      // What this revision no longer has would stay for ever.
      const now = new Set([...files.values()].map(identityOf));
      for (const file of readListing(location, kept ?? '').files?.values() ?? []) {
        const identity = identityOf(file);
        if (identity !== undefined && !now.has(identity)) await cache.discard(identity);
      }
    },
  };
}

/** Content that is known by its digest is the same in all revisions, and in all copies of a model. */
function identityOf(file: HubFile | undefined): string | undefined {
  if (file?.sha256 !== undefined) return `sha256:${file.sha256}`;
  return file?.blobId === undefined ? undefined : `git:${file.blobId}`;
}

function listIdentity({ hubUrl, id, revision }: ModelLocation & { kind: 'hub' }): string {
  return `hub:${hubUrl} ${id}@${revision}`;
}

/**
 * The hub's list, and the one that was kept when the model was loaded the last time; that one will do while the hub can't be
 * reached.
 */
async function listOnHub(
  location: ModelLocation & { kind: 'hub' },
  { download, downloads }: FolderContext,
): Promise<{ readonly listing: string; readonly kept: string | undefined }> {
  const { network, cache } = downloads;
  const { listing, failure } = await askHub(location, download.hubToken, network);
  const kept = await cache?.readList(listIdentity(location));
  if (listing !== undefined) return { listing, kept };
  if (kept === undefined) throw failure;
  return { listing: kept, kept };
}
