/** Workers whose script is in a Blob, as it must be where browsers start none by its URL. */

/** Whether an address is of another origin than the page, such as a CDN's. */
export function isForeign(url: string): boolean {
  return /^https?:/.test(url) && new URL(url).origin !== location.origin;
}

/** A Worker with a script of another origin. */
export function importForeign(url: string): Worker {
  return startScript(`import ${JSON.stringify(url)};`);
}

/** A Worker that runs the text of a module. */
export function startScript(text: string): Worker {
  const scriptUrl = URL.createObjectURL(new Blob([text], { type: 'text/javascript' }));
  const worker = new Worker(scriptUrl, { type: 'module' });
  const release = () => URL.revokeObjectURL(scriptUrl);
  // Not at once: browsers fetch it later.
  worker.addEventListener('message', release, { once: true });
  worker.addEventListener('error', release, { once: true });
  return worker;
}
