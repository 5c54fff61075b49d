/** What happens to one request for a file, in place of the right answer. */
export interface Fault {
  status?: number;
  headers?: Record<string, string>;
  /** Sent in place of the file. */
  body?: string | Uint8Array;
  /** Sends so many bytes of the answer, and cuts the connection. */
  cutAfter?: number;
  /** Says that the answer is longer or shorter than it is. */
  declare?: number;
  /** Sends the answer compressed. */
  gzip?: boolean;
  /** Waits for this before the answer, or, with `cutAfter`, before the cut. */
  until?: Promise<unknown>;
}

export interface HubModel {
  commit: string;
  files: Record<string, Uint8Array | string>;
  /** Names of files that the hub redirects to its CDN, with their digests. */
  lfs?: string[];
}

export interface HubRequest {
  method: string;
  /** `api`, `resolve`, `cdn` or `plain`. */
  route: string;
  file: string;
  headers: Record<string, string | undefined>;
  status: number;
}

export interface HubOptions {
  models: Record<string, HubModel>;
  /** Whether it lists the files of a model. Default true. */
  api?: boolean;
  /** Needed for everything but the CDN. */
  token?: string;
  /** Whether it takes the Range header. Default true. */
  ranges?: boolean;
  /** `ETag`s: strong (default), weak or none. Without, there is a Last-Modified unless `lastModified` is false. */
  etags?: 'strong' | 'weak' | 'none';
  lastModified?: boolean;
  /** Whether pages of other origins see more than the plainest headers. Default true. */
  exposes?: boolean;
  /** Whether the digests that it states are those of other files. */
  statesWrongDigests?: boolean;
}

export interface HubServer extends HubOptions {
  /** Without a slash at its end. */
  readonly url: string;
  readonly cdnUrl: string;
  /** Of a folder with the same files, on a server that is no hub. */
  plainUrl(id: string): string;
  readonly requests: HubRequest[];
  /** Does this to the next requests for a file's content; for `api`, to those for the list. */
  fail(file: string, ...faults: Fault[]): void;
  close(): Promise<void>;
}

export function startHub(options: HubOptions): Promise<HubServer>;
