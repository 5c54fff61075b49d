import type { KvasmError } from '../../errors.js';
import { describeThrown } from '../../protocol.js';
import { loadFailed } from '../files.js';

export interface NetworkOptions {
  /** How often a request is tried again without progress in between. */
  readonly retries: number;
  /** Waits that many milliseconds. */
  readonly sleep: (milliseconds: number) => Promise<void>;
  /** From 0 to 1. */
  readonly random: () => number;
  /**
   * Whether `fetch` shows redirects. Then they are followed here, since the hub states the length and the digest of a file
   * in the answer that redirects to it. Browsers hide that one.
   */
  readonly seesRedirects: boolean;
  /** After so long without a byte a connection counts as cut. Default a minute. */
  readonly stallMilliseconds?: number;
}

export interface Answer {
  readonly response: Response;
  /** Waits for the next bytes of the body; these reject when none come for too long. */
  readonly watch: <T>(bytes: Promise<T>) => Promise<T>;
  /** What the hub says of the file that it redirects to. */
  readonly linked: { readonly size: number | undefined; readonly sha256: string | undefined };
}

const firstPause = 500;
const longestPause = 30_000;
/** Progress that starts the count of retries anew, in bytes. */
const progressBytes = 2 ** 20;
const mostRedirects = 10;
/** Without a word from any server, it is the address that is wrong, more often than not. */
const firstRetries = 2;

/** One load's requests: tries again what may pass, with pauses that grow and vary. */
export class Network {
  readonly #options: NetworkOptions;
  #answered = false;

  constructor(options: NetworkOptions) {
    this.#options = options;
  }

  /** The tries that one file has. */
  patience(): Patience {
    return new Patience(this.#options);
  }

  /**
   * Answers of any status but those that may pass; the body is the caller's to read or cancel.
   * @throws ModelError `load-failed`
   */
  async request(url: string, init: RequestInit, patience: Patience): Promise<Answer> {
    for (;;) {
      let failure: KvasmError;
      let after: number | undefined;
      let most: number | undefined;
      try {
        const answer = await this.#follow(url, init);
        this.#answered = true;
        const { response } = answer;
        if (!mayPass(response.status)) return answer;
        await response.body?.cancel();
        after = retryAfter(response.headers);
        failure = loadFailed(url, `cannot be fetched (${statusOf(response)})`);
      } catch (cause) {
        failure = loadFailed(url, `cannot be fetched (${describeThrown(cause)})`, cause);
        if (!this.#answered) most = firstRetries;
      }
      await patience.pause(failure, { after, most });
    }
  }

  async #follow(url: string, init: RequestInit): Promise<Answer> {
    const linked: { size: number | undefined; sha256: string | undefined } = {
      size: undefined,
      sha256: undefined,
    };
    const { seesRedirects, stallMilliseconds = 60_000 } = this.#options;
    const stalled = new AbortController();
    const watch = async <T>(progress: Promise<T>): Promise<T> => {
      const stall = () =>
        stalled.abort(new Error(`nothing came for ${stallMilliseconds / 1000} s`));
      const timer = setTimeout(stall, stallMilliseconds);
      try {
        return await progress;
      } finally {
        clearTimeout(timer);
      }
    };
    const { signal } = stalled;
    let at = url;
    let headers = new Headers(init.headers);
    for (let hops = 0; ; hops++) {
      const redirect = seesRedirects ? 'manual' : 'follow';
      const response = await watch(fetch(at, { ...init, headers, redirect, signal }));
      linked.size ??= linkedSize(response.headers);
      linked.sha256 ??= linkedDigest(response.headers);
      const location = response.headers.get('location');
      if (!(response.status >= 300 && response.status < 400) || location === null) {
        return { response, watch, linked };
      }
      await response.body?.cancel();
      if (hops === mostRedirects) throw new Error(`more than ${mostRedirects} redirects`);
      const next = new URL(location, at);
      if (next.origin !== new URL(at).origin) {
        // A token is for the one whom it was given for.
        headers = new Headers(headers);
        headers.delete('authorization');
      }
      at = next.href;
    }
  }
}

/** Counts the tries for one file, and makes the pauses between them. */
export class Patience {
  readonly #options: NetworkOptions;
  #failures = 0;
  #progress = 0;

  constructor(options: NetworkOptions) {
    this.#options = options;
  }

  /** Bytes have come. */
  progress(byteCount: number): void {
    this.#progress += byteCount;
    if (this.#progress >= progressBytes) this.#failures = 0;
  }

  /**
   * Resolves when it is time to try again.
   * @param wishes `after`: milliseconds that the server asks for; `most`: a lower limit of retries.
   * @throws `failure` when that was the last try.
   */
  async pause(
    failure: KvasmError,
    {
      after = 0,
      most = this.#options.retries,
    }: { after?: number | undefined; most?: number | undefined } = {},
  ): Promise<void> {
    if (this.#failures >= Math.min(most, this.#options.retries)) throw failure;
    const longest = Math.min(firstPause * 2 ** this.#failures, longestPause);
    this.#failures++;
    this.#progress = 0;
    // Of random length, so that those who were cut off together do not come back together.
    const pause = longest * (0.5 + 0.5 * this.#options.random());
    await this.#options.sleep(Math.max(pause, Math.min(after, longestPause)));
  }
}

export function statusOf(response: Response): string {
  return `HTTP status ${response.status}${response.statusText && ` ${response.statusText}`}`;
}

function mayPass(status: number): boolean {
  return [408, 425, 429, 500, 502, 503, 504].includes(status);
}

function retryAfter(headers: Headers): number | undefined {
  const text = headers.get('retry-after');
  if (text === null) return undefined;
  const seconds = Number(text);
  const milliseconds = Number.isFinite(seconds) ? 1000 * seconds : Date.parse(text) - Date.now();
  return Number.isFinite(milliseconds) ? Math.max(milliseconds, 0) : undefined;
}

function linkedSize(headers: Headers): number | undefined {
  const size = Number(headers.get('x-linked-size') ?? Number.NaN);
  return Number.isSafeInteger(size) && size >= 0 ? size : undefined;
}

/** For LFS files the tag is the SHA-256 digest; for others it is something else, of another length. */
function linkedDigest(headers: Headers): string | undefined {
  return /^(?:W\/)?"?([0-9a-f]{64})"?$/.exec(headers.get('x-linked-etag') ?? '')?.[1];
}

export function sleep(milliseconds: number): Promise<void> {
  return new Promise(resolve => setTimeout(resolve, milliseconds));
}
