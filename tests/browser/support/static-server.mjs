import { createReadStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import { createServer } from 'node:http';
import { extname, join, normalize, sep } from 'node:path';

const types = {
  '.css': 'text/css; charset=utf-8',
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.json': 'application/json',
  '.svg': 'image/svg+xml',
  '.wasm': 'application/wasm',
};

// The strictest under which WebAssembly runs at all.
const strictPolicy = "default-src 'self'; script-src 'self' 'wasm-unsafe-eval'; connect-src 'self'";

export const isolation = {
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Cross-Origin-Embedder-Policy': 'require-corp',
};

/**
 * Serves folders and texts on 127.0.0.1, as a static host would: every answer has its length, what is missing is a 404.
 *
 * @param {object} site
 * @param {Record<string, string>} site.folders path prefix, such as `/models/`, to folder; the first that fits serves
 * @param {Record<string, string>} [site.texts] path to content, before all folders
 * @param {Record<string, string>} [site.headers] sent with every answer, beside a strict Content-Security-Policy
 * @param {Record<string, string>} [site.types] file extension to content type, in place of the usual one
 * @param {string} [site.connect] another origin that the pages may fetch from
 * @param {{ bytesPerSecond: number }} [site.pace] of weights; may change meanwhile
 * @param {(file: string) => void} [site.onFile] told each file from a folder that is sent
 * @returns {Promise<{ url: string, close(): Promise<void> }>} `url` ends in a slash
 */
export async function serve({
  folders,
  texts = {},
  headers = {},
  types: otherTypes = {},
  ...rest
}) {
  const policy = rest.connect === undefined ? strictPolicy : `${strictPolicy} ${rest.connect}`;
  const server = createServer(async (request, response) => {
    const path = decodeURIComponent(new URL(request.url, 'http://localhost').pathname);
    const name = path.endsWith('/') ? `${path}index.html` : path;
    const type = { ...types, ...otherTypes }[extname(name)];
    response.setHeader('Content-Security-Policy', policy);
    for (const [key, value] of Object.entries(headers)) response.setHeader(key, value);
    if (type) response.setHeader('Content-Type', type);
    if (Object.hasOwn(texts, name)) {
      response.end(texts[name]);
      return;
    }
    const file = locate(folders, name);
    const size = file && (await sizeOf(file));
    if (size === undefined) {
      response.writeHead(404, { 'Content-Type': 'text/plain' }).end('not here\n');
      return;
    }
    rest.onFile?.(file);
    response.setHeader('Content-Length', size);
    send(file, response, extname(name) === '.safetensors' ? rest.pace : undefined);
  });
  await new Promise(resolve => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${server.address().port}/`,
    close: () =>
      new Promise(resolve => {
        server.close(resolve);
        server.closeAllConnections();
      }),
  };
}

function locate(folders, path) {
  for (const [prefix, folder] of Object.entries(folders)) {
    if (!path.startsWith(prefix)) continue;
    const file = normalize(join(folder, path.slice(prefix.length)));
    if (file.startsWith(normalize(folder + sep))) return file;
  }
  return undefined;
}

async function sizeOf(file) {
  try {
    const found = await stat(file);
    return found.isFile() ? found.size : undefined;
  } catch {
    return undefined;
  }
}

function send(file, response, pace) {
  const stream = createReadStream(file, { highWaterMark: pace ? 4096 : 1 << 20 });
  response.on('close', () => stream.destroy());
  if (!pace) {
    stream.pipe(response);
    return;
  }
  stream.on('data', chunk => {
    response.write(chunk);
    stream.pause();
    setTimeout(() => stream.resume(), (1000 * chunk.length) / pace.bytesPerSecond);
  });
  stream.on('end', () => response.end());
}
