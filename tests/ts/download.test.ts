import { createHash } from 'node:crypto';
import * as fc from 'fast-check';
import { afterEach, describe, expect, it, vi } from 'vitest';

import { ModelError } from '../../bindings/ts/errors.js';
import type { LoadOptions, LoadProgress, ModelSource } from '../../bindings/ts/types.js';
import { Sha256 } from '../../bindings/ts/worker/download/sha256.js';
import type { HubOptions, HubServer } from '../support/hub-server.mjs';
import { FakeWasm, fakeWeights } from './fake-wasm-module.js';
import { root, serveFiles } from './file-server.js';
import { FakePlatform, idle, loadOn, modelFiles, rejection } from './harness.js';
import { modelId, receivedBy, startTinyHub, tinyModel, weights, weightsFile } from './hub.js';
import { MemoryStore } from './memory-store.js';

const patience = { timeout: 30_000 };

let hub: HubServer;
afterEach(() => hub?.close());

async function start(options: Partial<HubOptions> = {}): Promise<void> {
  hub = await startTinyHub(options);
}

async function load(options: LoadOptions = {}, source: ModelSource = modelId) {
  const wasm = new FakeWasm();
  const platform = new FakePlatform(wasm);
  const engine = await loadOn(platform, source, { hubUrl: hub.url, ...options });
  await engine.dispose();
  expect(receivedBy(wasm)).toEqual(weights);
  return platform;
}

/** The error, after a look that no worker is left. */
async function failure(options: LoadOptions = {}, source: ModelSource = modelId) {
  const platform = new FakePlatform(new FakeWasm());
  const error = await rejection(loadOn(platform, source, { hubUrl: hub.url, ...options }));
  expect(platform.alive).toBe(0);
  expect(error).toBeInstanceOf(ModelError);
  return error as ModelError;
}

/** What was asked for, as the server saw it. */
function asked(route?: string): string[] {
  const requests = hub.requests.filter(request => route === undefined || request.route === route);
  return requests.map(({ file }) => file);
}

/** Of the requests that were answered with bytes. */
function ranges(): string[] {
  const requests = hub.requests.filter(({ route }) => route !== 'resolve');
  return requests.flatMap(({ headers }) => headers.range ?? []);
}

describe('a model on the hub', () => {
  it('is asked for once as a whole, and then for what there is, at its commit', async () => {
    await start();
    await load();
    expect(hub.requests.map(({ status }) => status)).not.toContain(404);
    expect(asked('api')).toHaveLength(1);
    expect(asked('resolve')).toEqual(['config.json', 'vocab.json', 'merges.txt', weightsFile]);
    expect(asked('cdn')).toEqual([weightsFile]);
  });

  it('is found on a mirror that has no more than the files', async () => {
    await start({ api: false });
    await load();
    const missing = hub.requests.filter(({ status }) => status === 404).map(({ file }) => file);
    expect(missing).toEqual(['api', 'tokenizer.json', 'generation_config.json']);
  });

  it.each(['v1', modelId.concat('@v1')])('has no revision that nobody made: %s', async name => {
    await start();
    const isId = name.includes('/');
    const error = await failure(isId ? {} : { revision: name }, isId ? name : modelId);
    expect(error).toMatchObject({
      code: 'load-failed',
      message: 'someone/tiny: the hub has no revision "v1" of this model.',
    });
  });

  it('is opened by a token, which nobody but the hub sees', async () => {
    await start({ token: 'secret' });
    expect(await failure()).toMatchObject({
      code: 'load-failed',
      message: expect.stringMatching(/private or gated \(HTTP status 401.*option hubToken/),
    });
    expect(await failure({ hubToken: 'wrong' })).toMatchObject({
      message: expect.stringMatching(/the hubToken does not open it/),
    });
    hub.requests.length = 0;
    await load({ hubToken: 'secret' });
    for (const { route, headers } of hub.requests) {
      expect(headers.authorization).toBe(route === 'cdn' ? undefined : 'Bearer secret');
    }
  });

  it('has known sizes, so that progress has a whole from the start', async () => {
    await start();
    const reports: LoadProgress[] = [];
    await load({ onProgress: progress => reports.push(progress) });
    const totals = new Set(reports.map(({ overall }) => overall.total));
    expect(totals.size).toBe(1);
    expect(reports.at(-1)?.overall.loaded).toBe([...totals][0]);
  });

  it('says that it is gated where one file is refused', async () => {
    await start();
    hub.fail(weightsFile, { status: 403 });
    expect(await failure()).toMatchObject({
      message: expect.stringMatching(/HTTP status 403.*does not open this model/),
    });
  });
});

describe('a folder', () => {
  const plain = () => hub.plainUrl(modelId);

  it('is asked in a sensible order: what there most often is comes first', async () => {
    await start();
    await load({}, plain());
    const optional = ['tokenizer.json', 'generation_config.json'];
    const missing = hub.requests.filter(({ status }) => status === 404).map(({ file }) => file);
    expect(missing).toEqual(optional);
  });

  it('may be named by its weights', async () => {
    await start({ models: { [modelId]: tinyModel({ 'other.safetensors': weights }) } });
    await load({}, `${plain()}/other.safetensors`);
    expect(asked()).toContain('other.safetensors');
    expect(asked()).not.toContain(weightsFile);
  });
});

describe('a request that fails', () => {
  it.each([408, 429, 500, 502, 503, 504])('with status %i is tried again', async status => {
    await start();
    hub.fail('config.json', { status }, { status });
    const { pauses } = await load();
    expect(pauses).toEqual([500, 1000]);
  });

  it('is not tried again where that is of no use', async () => {
    await start();
    hub.fail('config.json', { status: 400 });
    expect((await failure()).message).toMatch(/config\.json: cannot be fetched \(HTTP status 400/);
    expect(asked('resolve')).toEqual(['config.json']);
  });

  it('is tried as often as asked for, with longer pauses each time, and no more', async () => {
    await start();
    hub.fail('config.json', ...Array.from({ length: 20 }, () => ({ status: 503 })));
    const platform = new FakePlatform(new FakeWasm());
    const options = { hubUrl: hub.url, retries: 8 };
    expect(await rejection(loadOn(platform, modelId, options))).toMatchObject({
      code: 'load-failed',
      message: expect.stringMatching(/HTTP status 503/),
    });
    expect(platform.pauses).toEqual([500, 1000, 2000, 4000, 8000, 16_000, 30_000, 30_000]);
    hub.requests.length = 0;
    hub.fail('config.json', { status: 503 });
    await failure({ retries: 0 });
    expect(asked('resolve')).toEqual(['config.json']);
  });

  it('waits for as long as the server asks for, within bounds', async () => {
    await start();
    const busy = (value: string) => ({ status: 429, headers: { 'Retry-After': value } });
    const soon = new Date(Date.now() + 9000).toUTCString();
    hub.fail('config.json', busy('7'), busy('86400'), busy(soon), busy('never'));
    const [first, second, third = 0, fourth] = (await load()).pauses;
    expect([first, second, fourth]).toEqual([7000, 30_000, 4000]);
    expect(third).toBeGreaterThan(2000);
    expect(third).toBeLessThanOrEqual(9000);
  });

  it('pauses for random times, so that not all come back at once', async () => {
    await start();
    hub.fail('config.json', { status: 503 });
    const pauses: number[] = [];
    const sleep = async (milliseconds: number) => void pauses.push(milliseconds);
    const network = { sleep, random: () => 0, seesRedirects: true };
    await loadOn(new FakePlatform(new FakeWasm(), { network }), modelId, { hubUrl: hub.url });
    expect(pauses).toEqual([250]);
  });

  it('gives up sooner while no server has answered at all', async () => {
    await start();
    const platform = new FakePlatform(new FakeWasm());
    const source = 'http://127.0.0.1:9/model';
    expect(await rejection(loadOn(platform, source))).toMatchObject({
      code: 'load-failed',
      message: expect.stringMatching(/model\/config\.json: cannot be fetched/),
    });
    expect(platform.pauses).toHaveLength(2);
  });
});

describe('a download that is cut off', () => {
  const plain = () => hub.plainUrl(modelId);

  it.each(['hub', 'folder'])('goes on from there: %s', async where => {
    await start();
    hub.fail(weightsFile, { cutAfter: 2000 }, { cutAfter: 1000 });
    await load({}, where === 'hub' ? modelId : plain());
    expect(ranges()).toEqual(['bytes=2000-', 'bytes=3000-']);
  });

  it('goes on wherever it was cut', async () => {
    await start();
    const cuts = fc.array(fc.integer({ min: 1, max: 1500 }), { maxLength: 4 });
    const run = fc.asyncProperty(cuts, fc.boolean(), async (cuts, ranges) => {
      hub.ranges = ranges;
      hub.fail(weightsFile, ...cuts.map(cutAfter => ({ cutAfter })));
      await load();
    });
    await fc.assert(run, { numRuns: 15 });
  });

  it('is read to where it was, where the server has no ranges', async () => {
    await start({ ranges: false });
    hub.fail(weightsFile, { cutAfter: 2000 });
    await load({}, plain());
    expect(ranges()).toEqual(['bytes=2000-']);
  });

  it.each(['weak', 'none'] as const)(
    'starts anew where versions have no names: %s',
    async etags => {
      await start({ etags, lastModified: false });
      hub.fail(weightsFile, { cutAfter: 2000 });
      await load({}, plain());
      expect(ranges()).toEqual(['bytes=2000-']);
    },
  );

  it('starts anew when the file has changed meanwhile', async () => {
    await start();
    const before = fakeWeights(6000);
    hub.models[modelId] = tinyModel({ [weightsFile]: before });
    let go: (value: unknown) => void = () => {};
    const until = new Promise(resolve => {
      go = resolve;
    });
    hub.fail(weightsFile, { cutAfter: 2000, until });
    const loading = load({}, plain());
    await expect.poll(() => asked(), patience).toContain(weightsFile);
    hub.models[modelId] = tinyModel();
    go(undefined);
    await loading;
    expect(hub.requests.find(({ headers }) => headers.range)?.headers['if-range']).toBeDefined();
  });

  it('has its tries for each mebibyte', async () => {
    const large = fakeWeights(3.5 * 2 ** 20);
    await start({ models: { [modelId]: tinyModel({ [weightsFile]: large }) } });
    const cutAfter = 1.1 * 2 ** 20;
    hub.fail(weightsFile, { cutAfter }, { cutAfter }, { cutAfter });
    const wasm = new FakeWasm({ stagingSize: 4096 });
    await loadOn(new FakePlatform(wasm), modelId, { hubUrl: hub.url, retries: 1 });
    expect(wasm.received.length).toBe(large.length);
  });

  it('counts as cut when nothing comes for long', async () => {
    await start();
    const never = new Promise(() => {});
    hub.fail('config.json', { until: never });
    hub.fail(weightsFile, { cutAfter: 2000, until: never });
    const wasm = new FakeWasm();
    const sleep = async () => {};
    const network = { sleep, random: () => 1, seesRedirects: true, stallMilliseconds: 400 };
    await loadOn(new FakePlatform(wasm, { network }), modelId, { hubUrl: hub.url, retries: 9 });
    expect(receivedBy(wasm)).toEqual(weights);
    expect(ranges()).toContain('bytes=2000-');
  });

  it('fails when it is cut too often, and says how', async () => {
    await start();
    hub.fail(weightsFile, ...Array.from({ length: 20 }, () => ({ cutAfter: 10 })));
    expect(await failure({ retries: 3 })).toMatchObject({
      code: 'load-failed',
      message: expect.stringMatching(/model\.safetensors: reading stopped/),
    });
    expect(asked('cdn')).toHaveLength(4);
  });

  it('is aborted at each of its stages', async () => {
    await start();
    const reason = new Error('enough');
    const never = new Promise(() => {});
    const faults = { until: never };
    for (const file of ['api', 'config.json', 'merges.txt', weightsFile]) {
      for (const fault of file === weightsFile ? [faults, { ...faults, cutAfter: 99 }] : [faults]) {
        hub.fail(file, fault);
        const controller = new AbortController();
        const platform = new FakePlatform(new FakeWasm());
        const options = { hubUrl: hub.url, signal: controller.signal };
        const loading = rejection(loadOn(platform, modelId, options));
        await expect.poll(() => asked(), patience).toContain(file);
        await idle(5);
        controller.abort(reason);
        expect(await loading).toBe(reason);
        expect(platform.alive).toBe(0);
      }
    }
  });
});

describe('what arrives', () => {
  const plain = () => hub.plainUrl(modelId);

  it('has the length that the hub states', async () => {
    await start();
    hub.fail(weightsFile, { body: weights.slice(0, 4000) });
    const message = expect.stringMatching(/has 4000 bytes in place of 5000/);
    expect(await failure()).toMatchObject({ code: 'integrity', message });
    hub.fail(weightsFile, { body: fakeWeights(6000) });
    expect(await failure()).toMatchObject({ code: 'integrity' });
  });

  it('has the digest that the hub states', async () => {
    await start({ statesWrongDigests: true });
    const digest = createHash('sha256').update(weights).digest('hex');
    expect(await failure()).toMatchObject({
      code: 'integrity',
      message: expect.stringMatching(`SHA-256 digest is ${digest} in place of`),
    });
  });

  it('has the digest that a redirect to it states, where that can be seen', async () => {
    await start({ statesWrongDigests: true, api: false });
    expect(await failure()).toMatchObject({ code: 'integrity' });
  });

  it('has the digest that the caller states', async () => {
    await start();
    const digest = createHash('sha256').update(weights).digest('hex');
    await load({ sha256: { [weightsFile]: digest.toUpperCase() } }, plain());
    const sha256 = { [weightsFile]: digest.replace(/^./, c => (c === '0' ? '1' : '0')) };
    expect(await failure({ sha256 }, plain())).toMatchObject({ code: 'integrity' });
  });

  it('may be compressed (B94)', async () => {
    await start();
    hub.fail('config.json', { gzip: true });
    hub.fail(weightsFile, { gzip: true });
    const reports: LoadProgress[] = [];
    await load({ onProgress: progress => reports.push(progress) }, plain());
    for (const { loaded, total } of reports) {
      expect(loaded).toBeLessThanOrEqual(total ?? Number.POSITIVE_INFINITY);
    }
  });

  it('is told from a Git LFS pointer (B89)', async () => {
    await start();
    const pointer =
      'version https://git-lfs.github.com/spec/v1\n' +
      `oid sha256:${'4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393'}\nsize 12345\n`;
    expect(pointer.length).toBeGreaterThan(120);
    for (const file of [weightsFile, 'vocab.json']) {
      hub.models[modelId] = tinyModel({ [file]: pointer });
      const error = await failure({}, plain());
      expect(error.code).toBe('load-failed');
      expect(error.message).toMatch(`${file}: is a Git LFS pointer`);
    }
  });

  it('is streamed, however long the server says that it is (B97)', async () => {
    await start();
    // More than an ArrayBuffer may have in some browsers.
    const announced = new Uint8Array(5000);
    new DataView(announced.buffer).setBigUint64(0, 3_000_000_000n, true);
    hub.fail(weightsFile, { body: announced, declare: 3e9, cutAfter: 5000 }, { status: 404 });
    const reports: LoadProgress[] = [];
    const error = await failure({ onProgress: progress => reports.push(progress) }, plain());
    expect(error).toMatchObject({ code: 'load-failed' });
    expect(reports.some(({ phase, total }) => phase === 'weights' && total === 3e9)).toBe(true);
  });
});

it('sums up any bytes in any pieces as SHA-256 does', () => {
  const pieces = fc.array(fc.uint8Array({ maxLength: 200 }), { maxLength: 6 });
  const property = fc.property(pieces, pieces => {
    const own = new Sha256();
    const reference = createHash('sha256');
    for (const piece of pieces) {
      own.update(piece);
      reference.update(piece);
    }
    expect(own.digest()).toBe(reference.digest('hex'));
  });
  fc.assert(property, { numRuns: 300 });
});

describe('memory', () => {
  afterEach(() => vi.unstubAllGlobals());

  /** Yields the weights in small chunks, and counts the bytes that it was asked for. */
  function counted(size: number) {
    const bytes = fakeWeights(size);
    const counter = { produced: 0 };
    const pull = (controller: ReadableStreamDefaultController<Uint8Array>) => {
      controller.enqueue(bytes.slice(counter.produced, counter.produced + 1000));
      counter.produced += 1000;
      if (counter.produced >= size) controller.close();
    };
    return { counter, stream: new ReadableStream<Uint8Array>({ pull }, { highWaterMark: 0 }) };
  }

  it('never holds more than a few chunks of a stream', async () => {
    const { counter, stream } = counted(100_000);
    const wasm = new FakeWasm();
    let most = 0;
    const consumed = vi.spyOn(wasm, 'HEAPU8', 'get');
    consumed.mockImplementation(() => {
      most = Math.max(most, counter.produced - wasm.received.length);
      return wasm.heap;
    });
    const files = modelFiles({ [weightsFile]: stream });
    await loadOn(new FakePlatform(wasm), files);
    expect(wasm.received).toHaveLength(100_000);
    expect(most).toBeGreaterThan(0);
    expect(most).toBeLessThanOrEqual(3000);
  });

  it('never holds more than a piece of a download that the storage is slow to keep', async () => {
    const { counter, stream } = counted(100_000);
    const headers = { etag: '"1"' };
    serveFiles({ [weightsFile]: () => new Response(stream, { headers }) });
    const wasm = new FakeWasm();
    const store = new MemoryStore();
    let most = 0;
    const put = store.put.bind(store);
    store.put = async (name, bytes) => {
      await idle(1);
      most = Math.max(most, counter.produced - wasm.received.length);
      await put(name, bytes);
    };
    const platform = new FakePlatform(wasm, { pieceBytes: 5000 });
    await loadOn(platform, root, { storage: store });
    expect(wasm.received).toHaveLength(100_000);
    expect(store.size).toBeGreaterThan(100_000);
    expect(most).toBeGreaterThan(0);
    expect(most).toBeLessThanOrEqual(5000 + 3000);
  });
});
