// A server that speaks the hub's URL scheme, and can fail in many ways: a list of files for each model, files by
// revision, redirects of large ones to a CDN of another origin, ranges, tags, tokens. Also serves the same files as plain
// folders.

import { createHash } from 'node:crypto';
import { createServer } from 'node:http';
import { gzipSync } from 'node:zlib';

const exposed =
  'ETag, Content-Range, Accept-Ranges, Content-Encoding, X-Linked-Etag, X-Linked-Size, X-Error-Code';
const modifiedAt = 'Wed, 01 May 2024 10:00:00 GMT';

/** @type {typeof import('./hub-server.mjs').startHub} */
export async function startHub(options) {
  const hub = {
    api: true,
    ranges: true,
    etags: 'strong',
    lastModified: true,
    exposes: true,
    ...options,
  };
  const faults = new Map();
  const cdn = await listen((request, response) => serve(request, response, 'cdn'));
  const origin = await listen((request, response) => serve(request, response, 'hub'));
  const state = Object.assign(hub, {
    url: origin.url,
    cdnUrl: cdn.url,
    requests: [],
    plainUrl: id => `${origin.url}/plain/${id}`,
    fail(file, ...next) {
      faults.set(file, [...(faults.get(file) ?? []), ...next]);
    },
    async close() {
      await Promise.all([origin.close(), cdn.close()]);
    },
  });

  async function serve(request, response, server) {
    const { pathname } = new URL(request.url, 'http://localhost');
    const path = decodeURIComponent(pathname);
    response.setHeader('Access-Control-Allow-Origin', '*');
    if (hub.exposes) response.setHeader('Access-Control-Expose-Headers', exposed);
    if (request.method === 'OPTIONS') {
      response.setHeader('Access-Control-Allow-Headers', 'Authorization, Range, If-Range');
      response.writeHead(204).end();
      return;
    }
    const record = { method: request.method, headers: request.headers };
    response.on('close', () => {
      record.status = response.statusCode;
    });
    const note = (route, file) => state.requests.push(Object.assign(record, { route, file }));
    if (server === 'cdn') {
      const [, id, file] = /^\/(.+)\/-\/(.+)$/.exec(path);
      note('cdn', file);
      await sendFile(request, response, file, hub.models[id]);
      return;
    }
    if (hub.token !== undefined && request.headers.authorization !== `Bearer ${hub.token}`) {
      note('refused', path);
      response.writeHead(401, { 'X-Error-Code': 'RepoNotFound' }).end('no');
      return;
    }
    const listed = /^\/api\/models\/(.+)\/revision\/(.+)$/.exec(path);
    if (listed) {
      note('api', 'api');
      await sendList(request, response, listed[1], listed[2]);
      return;
    }
    const resolved = /^\/(.+?)\/resolve\/([^/]+)\/(.+)$/.exec(path);
    if (resolved) {
      const [, id, revision, file] = resolved;
      note('resolve', file);
      const model = hub.models[id];
      if (!model || !['main', model.commit].includes(revision)) {
        response.writeHead(404, { 'X-Error-Code': 'RevisionNotFound' }).end('no');
      } else if (model.lfs?.includes(file)) {
        const stated = hub.statesWrongDigests ? 'wrong' : model.files[file];
        response.writeHead(302, {
          Location: `${cdn.url}/${id}/-/${file}`,
          'X-Linked-Size': Buffer.byteLength(model.files[file]),
          'X-Linked-Etag': `"${sha256(stated)}"`,
        });
        response.end();
      } else {
        await sendFile(request, response, file, model);
      }
      return;
    }
    const plain = /^\/plain\/(.+)\/([^/]+)$/.exec(path);
    note('plain', plain?.[2] ?? path);
    await sendFile(request, response, plain?.[2], hub.models[plain?.[1]]);
  }

  async function sendList(request, response, id, revision) {
    const model = hub.models[id];
    if (!hub.api) return response.writeHead(404).end('no');
    if (!model) return response.writeHead(401, { 'X-Error-Code': 'RepoNotFound' }).end('no');
    if (!['main', model.commit].includes(revision)) {
      return response.writeHead(404, { 'X-Error-Code': 'RevisionNotFound' }).end('no');
    }
    const siblings = Object.entries(model.files).map(([rfilename, content]) => {
      const size = Buffer.byteLength(content);
      const blobId = createHash('sha1').update(`blob ${size}\0`).update(content).digest('hex');
      if (!model.lfs?.includes(rfilename)) return { rfilename, size, blobId };
      const stated = hub.statesWrongDigests ? 'wrong' : content;
      return { rfilename, size, blobId, lfs: { sha256: sha256(stated), size, pointerSize: 130 } };
    });
    await send(request, response, 'api', JSON.stringify({ sha: model.commit, siblings }), {});
  }

  async function sendFile(request, response, file, model) {
    const content = model?.files[file];
    if (content === undefined) return response.writeHead(404).end('no');
    const headers = {};
    const tag = `"${sha256(content).slice(0, 20)}"`;
    if (hub.etags !== 'none') headers.ETag = hub.etags === 'weak' ? `W/${tag}` : tag;
    if (hub.lastModified) headers['Last-Modified'] = modifiedAt;
    await send(request, response, file, content, headers);
  }

  async function send(request, response, file, content, headers) {
    const fault = faults.get(file)?.shift() ?? {};
    if (fault.until && fault.cutAfter === undefined) await fault.until;
    const all = Buffer.from(fault.body ?? content);
    let body = all;
    let status = fault.status ?? 200;
    const range = /^bytes=(\d+)-$/.exec(request.headers.range ?? '');
    const condition = request.headers['if-range'];
    const holds = condition === undefined || condition === headers.ETag;
    if (hub.ranges && range && holds && status === 200) {
      const from = Number(range[1]);
      status = from < all.length ? 206 : 416;
      body = from < all.length ? all.subarray(from) : Buffer.alloc(0);
      headers['Content-Range'] =
        status === 206 ? `bytes ${from}-${all.length - 1}/${all.length}` : `bytes */${all.length}`;
    }
    if (fault.gzip) {
      body = gzipSync(body);
      headers['Content-Encoding'] = 'gzip';
      delete headers['Content-Range'];
    }
    response.writeHead(status, {
      ...headers,
      'Content-Length': fault.declare ?? body.length,
      ...fault.headers,
    });
    if (request.method === 'HEAD') {
      response.end();
    } else if (fault.cutAfter !== undefined) {
      response.write(body.subarray(0, fault.cutAfter), async () => {
        await fault.until;
        // What is on its way arrives before the end, which comes too early.
        response.socket?.destroySoon();
      });
    } else {
      response.end(body);
    }
  }

  return state;
}

function sha256(content) {
  return createHash('sha256').update(content).digest('hex');
}

async function listen(handler) {
  const server = createServer((request, response) => {
    handler(request, response).catch(error => response.destroy(error));
  });
  await new Promise(resolve => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${server.address().port}`,
    close: () =>
      new Promise(resolve => {
        server.close(resolve);
        server.closeAllConnections();
      }),
  };
}
