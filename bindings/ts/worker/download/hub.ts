import { urlInFolder } from '../../source.js';
import { loadFailed } from '../files.js';
import { type Answer, type Network, statusOf } from './network.js';

/** What the hub says of a file: with LFS its digest, else the id of its blob in git. */
export interface HubFile {
  readonly size: number | undefined;
  readonly sha256: string | undefined;
  readonly blobId: string | undefined;
}

export interface HubModel {
  /** The folder whose files have just this revision: that of the commit. */
  readonly folder: string;
  /** By name; undefined where a mirror of the hub does not say. */
  readonly files: ReadonlyMap<string, HubFile> | undefined;
}

export interface HubAddress {
  readonly hubUrl: string;
  readonly id: string;
  readonly revision: string;
}

export function hubHeaders(token: string | undefined): Record<string, string> {
  return token === undefined ? {} : { Authorization: `Bearer ${token}` };
}

/**
 * Asks the hub once what a model's revision consists of, so that no file is asked for that is not there, all are of one
 * commit, and their lengths and digests are known. Mirrors that have no more than the files answer 404.
 * @returns The model, and what the hub answered; undefined for that when it can't be reached.
 * @throws ModelError `load-failed` when the hub does not know the model or does not show it.
 */
export async function askHub(
  { hubUrl, id, revision }: HubAddress,
  token: string | undefined,
  network: Network,
): Promise<{ readonly listing: string | undefined; readonly failure: unknown }> {
  const url = `${urlInFolder(hubUrl, `api/models/${id}/revision`)}/${encodeURIComponent(revision)}?blobs=true`;
  let answer: Answer;
  try {
    const init: RequestInit = { headers: hubHeaders(token), cache: 'no-cache' };
    answer = await network.request(url, init, network.patience());
  } catch (failure) {
    return { listing: undefined, failure };
  }
  const { response, watch } = answer;
  const { status, headers } = response;
  if (response.ok) {
    try {
      return { listing: await watch(response.text()), failure: undefined };
    } catch (failure) {
      return { listing: undefined, failure };
    }
  }
  await response.body?.cancel();
  if (status === 404 && /RevisionNotFound/i.test(headers.get('x-error-code') ?? '')) {
    throw loadFailed(id, `the hub has no revision ${JSON.stringify(revision)} of this model`);
  }
  if (status === 401 || status === 403) {
    throw loadFailed(
      id,
      `the hub has no such model, or it is private or gated (${statusOf(response)}); ` +
        (token === undefined
          ? 'for those, give the option hubToken'
          : 'the hubToken does not open it'),
    );
  }
  // A mirror without the API, by the looks of it.
  return { listing: '', failure: undefined };
}

/** @param listing What `askHub` returned. */
export function readListing({ hubUrl, id, revision }: HubAddress, listing: string): HubModel {
  const folder = (commit: string) =>
    `${urlInFolder(hubUrl, id)}/resolve/${encodeURIComponent(commit)}`;
  const parsed = parseListing(listing);
  if (!parsed) return { folder: folder(revision), files: undefined };
  return { folder: folder(parsed.commit), files: parsed.files };
}

function parseListing(
  text: string,
): { readonly commit: string; readonly files: ReadonlyMap<string, HubFile> } | undefined {
  let listing: unknown;
  try {
    listing = JSON.parse(text);
  } catch {
    return undefined;
  }
  const { sha, siblings } = Object(listing) as { sha?: unknown; siblings?: unknown };
  if (typeof sha !== 'string' || !Array.isArray(siblings)) return undefined;
  const files = new Map<string, HubFile>();
  for (const sibling of siblings as unknown[]) {
    const { rfilename, size, blobId, lfs } = Object(sibling) as Record<string, unknown>;
    if (typeof rfilename !== 'string') continue;
    const { sha256, size: lfsSize = size } = Object(lfs) as Record<string, unknown>;
    files.set(rfilename, {
      size: typeof lfsSize === 'number' ? lfsSize : undefined,
      sha256: typeof sha256 === 'string' && /^[0-9a-f]{64}$/.test(sha256) ? sha256 : undefined,
      blobId: typeof blobId === 'string' ? blobId : undefined,
    });
  }
  return files.size === 0 ? undefined : { commit: sha, files };
}
