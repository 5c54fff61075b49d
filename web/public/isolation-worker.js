// A service worker for static hosts that cannot send headers: it adds the two without which a browser gives a page no
// shared memory, and so no threads. It touches documents and workers only; nothing is stored, and nothing else goes through
// its hands.

addEventListener('install', () => skipWaiting());
addEventListener('activate', event => event.waitUntil(clients.claim()));

addEventListener('fetch', event => {
  const { request } = event;
  const needsHeaders = request.mode === 'navigate' || request.destination === 'worker';
  if (!needsHeaders || new URL(request.url).origin !== location.origin) return;
  event.respondWith(withHeaders(request));
});

async function withHeaders(request) {
  const response = await fetch(request);
  // A redirect is for the browser to follow.
  if (response.status === 0) return response;
  const headers = new Headers(response.headers);
  headers.set('Cross-Origin-Opener-Policy', 'same-origin');
  headers.set('Cross-Origin-Embedder-Policy', 'require-corp');
  const { status, statusText } = response;
  return new Response(response.body, { status, statusText, headers });
}
