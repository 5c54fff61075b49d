/** Starts the Worker's script in browsers, and finds out why it did not start. */

import { importForeign, isForeign, startScript } from './blob-worker.js';
import { describeThrown } from './protocol.js';

/** A Worker, and what to say when it fails before its first message. */
export interface StartedWorker {
  readonly worker: Worker;
  /** The likeliest reason, in one clause; the browser itself gives none. */
  explainFailure(): Promise<string>;
}

// In a statement of its own, because bundlers take `new URL('…', import.meta.url)` for a file to emit. Undefined in a
// script that is no module.
const here: string | undefined = import.meta.url;

/** Where the script lies beside this file; undefined in a bundle, where it has a name that only the bundler knows. */
export const packagedWorkerUrl: string | undefined =
  here !== undefined && /^https?:.*\/worker-script\.js(\?|$)/.test(here)
    ? new URL('./kvasm-worker.js', here).href
    : undefined;

/**
 * The script at an address. One of another origin, such as a CDN's, is imported by a script of the page's own in a Blob, since
 * browsers start no Worker across origins; that takes CORS headers there, and `blob:` and that origin in `worker-src` here.
 * @throws what the browser throws when it refuses.
 */
export function startAt(url: string): StartedWorker {
  const worker = isForeign(url) ? importForeign(url) : new Worker(url, { type: 'module' });
  return { worker, explainFailure: () => explain(url) };
}

/**
 * The script as a bundler emits it; where it emits none, this names a file that is not there.
 * @throws what the browser throws when it refuses.
 */
export function startEmitted(): StartedWorker {
  // Bundlers look for this very expression.
  const worker = new Worker(new URL('./kvasm-worker.js', import.meta.url), { type: 'module' });
  return { worker, explainFailure: async () => 'its script could not be loaded' };
}

/**
 * The script that comes inside the bundle, whatever the bundler.
 * @throws Error when there is none, or what the browser throws when it refuses.
 */
export async function startEmbedded(): Promise<StartedWorker> {
  const { script } = await import('./embedded-worker.js');
  if (script === undefined) throw new Error('the package was built without it');
  const explainFailure = async () =>
    "it was refused; the cause may be a Content-Security-Policy without 'worker-src blob:'";
  return { worker: startScript(script), explainFailure };
}

async function explain(url: string): Promise<string> {
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
