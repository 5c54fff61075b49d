// Adds to every answer the headers that isolate a page, for hosts where one cannot set them.
const isolation = {
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Cross-Origin-Embedder-Policy': 'require-corp',
};

self.addEventListener('install', () => self.skipWaiting());
self.addEventListener('activate', event => event.waitUntil(self.clients.claim()));
self.addEventListener('fetch', event => {
  const { cache, mode } = event.request;
  // Browsers ask for this in a way that only they can answer.
  if (cache === 'only-if-cached' && mode !== 'same-origin') return;
  event.respondWith(isolate(event.request));
});

async function isolate(request) {
  const response = await fetch(request);
  // The headers of what is opaque can be neither read nor changed.
  if (response.status === 0) return response;
  const headers = new Headers(response.headers);
  for (const [name, value] of Object.entries(isolation)) headers.set(name, value);
  const { status, statusText } = response;
  return new Response(status === 204 || status === 304 ? null : response.body, {
    status,
    statusText,
    headers,
  });
}
