// Remembers that the page was reloaded once already, so that a browser in which that does not help is left in peace.
const reloaded = 'kvasm-isolation-reloaded';

// In milliseconds; who waits longer would rather have the page on one thread.
const patience = 3000;

/**
 * Where the host sends no COOP and COEP, lets a service worker add them, and reloads the page once to come under it. Without
 * one, as on a page without HTTPS, everything works on one thread.
 * @returns Whether the page is about to be reloaded.
 */
export async function ensureIsolation(): Promise<boolean> {
  if (crossOriginIsolated || !('serviceWorker' in navigator)) return false;
  try {
    if (sessionStorage.getItem(reloaded) !== null) return false;
    const url = new URL('./isolation-worker.js', document.baseURI);
    await navigator.serviceWorker.register(url);
    const ready = navigator.serviceWorker.ready.then(() => true);
    const tooLong = new Promise<false>(resolve => setTimeout(() => resolve(false), patience));
    if (!(await Promise.race([ready, tooLong]))) return false;
    sessionStorage.setItem(reloaded, '');
  } catch {
    // Storage or service workers are forbidden here.
    return false;
  }
  location.reload();
  return true;
}
