/** Workers with a script of another origin, such as a CDN's, which browsers do not start by its URL. */

/** Whether an address is of another origin than the page. */
export function isForeign(url: string): boolean {
  return /^https?:/.test(url) && new URL(url).origin !== location.origin;
}

/** A Worker with a script of another origin. */
export function importForeign(url: string): Worker {
  const script = new Blob([`import ${JSON.stringify(url)};`], { type: 'text/javascript' });
  const scriptUrl = URL.createObjectURL(script);
  const worker = new Worker(scriptUrl, { type: 'module' });
  const release = () => URL.revokeObjectURL(scriptUrl);
  // Not at once: browsers fetch it later.
  worker.addEventListener('message', release, { once: true });
  worker.addEventListener('error', release, { once: true });
  return worker;
}
