/** Starts the Worker's script in browsers, and finds out why it did not start. */

import { importForeign, isForeign } from './foreign-worker.js';
import { describeThrown } from './protocol.js';

/** A Worker, and what to say when it fails before its first message. */
export interface StartedWorker {
  readonly worker: Worker;
  /** The likeliest reason, in one clause; the browser itself gives none. */
  explainFailure(): Promise<string>;
}

// In a statement of its own, because bundlers take `new URL('…', import.meta.url)` for a file to emit.
const here = import.meta.url;

/**
 * The script beside this file, or another. One of another origin, such as a CDN's, is imported by a script of the page's
 * own in a Blob, since browsers start no Worker across origins; that takes CORS headers there, and `blob:` and that origin in
 * `worker-src` here.
 * @throws what the browser throws when it refuses.
 */
export function startWorker(workerUrl: string | undefined): StartedWorker {
  const url = workerUrl ?? urlBesideThisFile();
  const explainFailure = () => explain(url);
  if (url !== undefined && isForeign(url)) return { worker: importForeign(url), explainFailure };
  const worker =
    workerUrl === undefined
      ? // Bundlers look for this very expression.
        new Worker(new URL('./worker.js', import.meta.url), { type: 'module' })
      : new Worker(workerUrl, { type: 'module' });
  return { worker, explainFailure };
}

/** Undefined in a bundle, where the script has a name that only the bundler knows. */
function urlBesideThisFile(): string | undefined {
  return /\/worker-script\.js(\?|$)/.test(here) && /^https?:/.test(here)
    ? new URL('./worker.js', here).href
    : undefined;
}

async function explain(url: string | undefined): Promise<string> {
  if (url === undefined) return 'its script could not be loaded';
  let response: Response;
  try {
    response = await fetch(url, { method: 'HEAD' });
  } catch (cause) {
    return `${url} cannot be fetched (${describeThrown(cause)})`;
  }
  if (!response.ok) return `${url} cannot be fetched (HTTP status ${response.status})`;
  const type = response.headers.get('content-type') ?? 'nothing';
  if (!/^(text|application)\/(x-)?(java|ecma)script\b/i.test(type)) {
    return `${url} is served as ${type}, and browsers run modules as text/javascript only`;
  }
  const causes =
    'a script that it imports, or the Content-Security-Policy (worker-src, script-src)';
  return `${url} is there and did not run; the cause may be ${causes}`;
}
