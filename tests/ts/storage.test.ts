import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import * as fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';

import { cache as cacheCommand } from '../../bindings/ts/cli/cache.js';
import { modelCache } from '../../bindings/ts/node.js';
import type { LoadOptions, LoadWarning, ModelSource } from '../../bindings/ts/types.js';
import type { HubOptions, HubServer } from '../support/hub-server.mjs';
import { type FakeOptions, FakeWasm, fakeWeights } from './fake-wasm-module.js';
import { config, FakePlatform, loadOn, rejection } from './harness.js';
import { modelId, receivedBy, startTinyHub, tinyModel, weights, weightsFile } from './hub.js';
import { MemoryStore } from './memory-store.js';

const pieceBytes = 1000;

let hub: HubServer;
let store: MemoryStore;
beforeEach(async () => {
  store = new MemoryStore();
});
afterEach(() => hub?.close());

async function start(options: Partial<HubOptions> = {}): Promise<void> {
  hub = await startTinyHub(options);
}

interface Loading {
  source?: ModelSource;
  options?: LoadOptions;
  fake?: FakeOptions;
  lock?: (name: string) => Promise<(() => void) | undefined>;
}

/** Loads with the store, and returns what was given to WebAssembly, and what was asked for. */
async function load({ source = modelId, options, fake, lock }: Loading = {}) {
  const wasm = new FakeWasm(fake);
  const platform = new FakePlatform(wasm, { pieceBytes, ...(lock && { lock }) });
  const warnings: LoadWarning[] = [];
  const before = hub.requests.length;
  const engine = await loadOn(platform, source, {
    hubUrl: hub.url,
    storage: store,
    onWarning: warning => warnings.push(warning),
    ...options,
  });
  await engine.dispose();
  const asked = hub.requests.slice(before).map(({ route, file }) => `${route} ${file}`);
  return { bytes: receivedBy(wasm), warnings, asked };
}

const plain = () => hub.plainUrl(modelId);

/** The headers of what is kept, by the names of the files. */
function kept(): Record<string, { name: string; model: string; size?: number; complete: boolean }> {
  const text = (name: string) => new TextDecoder().decode(store.bytes.get(name));
  const names = [...store.bytes.keys()].filter(name => name.endsWith('.json'));
  const entries = names.map(name => ({ name, ...JSON.parse(text(name)) }));
  return Object.fromEntries(entries.map(entry => [entry.file, entry]));
}

/** The names of the pieces that are kept of the weights. */
function weightsPieces(): string[] {
  const key = kept()[weightsFile]?.name.split('.')[0];
  const names = [...store.bytes.keys()].filter(name => !name.endsWith('.json'));
  return names.filter(name => name.startsWith(`${key}.`)).sort();
}

describe('what was downloaded', () => {
  it('is there for the next load: of the hub, nothing but the list is asked for', async () => {
    await start();
    expect((await load()).bytes).toEqual(weights);
    expect(weightsPieces()).toHaveLength(5);
    const { bytes, asked } = await load();
    expect(bytes).toEqual(weights);
    expect(asked).toEqual(['api api']);
  });

  it('is there while the hub cannot be reached', async () => {
    await start();
    await load();
    await hub.close();
    const { bytes } = await load();
    expect(bytes).toEqual(weights);
  });

  it('is fetched again where its content has changed, and only there', async () => {
    await start();
    await load();
    const other = fakeWeights(4000);
    hub.models[modelId] = { ...tinyModel({ [weightsFile]: other }), commit: 'decade' };
    const { bytes, asked } = await load();
    expect(bytes).toEqual(other);
    expect(asked).toEqual(['api api', `resolve ${weightsFile}`, `cdn ${weightsFile}`]);
    // The old ones are gone: there are four files and the list.
    expect([...store.bytes.keys()].filter(name => name.endsWith('.json'))).toHaveLength(5);
    expect((await load()).asked).toEqual(['api api']);
    await hub.close();
    expect((await load()).bytes).toEqual(other);
  });

  it.each(['strong', 'none'] as const)(
    'is compared with what a folder has now: %s',
    async etags => {
      await start({ etags });
      await load({ source: plain() });
      const heads = () => hub.requests.filter(({ method }) => method === 'HEAD').length;
      const { bytes } = await load({ source: plain() });
      expect(bytes).toEqual(weights);
      expect(heads()).toBe(4);
      if (etags === 'none') return;
      const other = fakeWeights(4000);
      hub.models[modelId] = tinyModel({ [weightsFile]: other });
      expect((await load({ source: plain() })).bytes).toEqual(other);
      expect((await load({ source: plain() })).bytes).toEqual(other);
      await hub.close();
      expect((await load({ source: plain() })).bytes).toEqual(other);
    },
  );

  it('is not kept where a server names no versions', async () => {
    await start({ etags: 'none', lastModified: false });
    await load({ source: plain() });
    expect(Object.keys(kept())).toEqual(['list of files']);
  });

  it('is not kept when it is not to be', async () => {
    await start();
    await load({ options: { storage: 'off' } });
    expect(store.size).toBe(0);
  });

  it('is gone when a folder has it no more', async () => {
    await start();
    await load({ source: plain() });
    hub.models[modelId] = tinyModel({ [weightsFile]: undefined });
    expect(await rejection(load({ source: plain() }))).toMatchObject({
      message: expect.stringMatching(/neither .*model\.safetensors \(HTTP status 404/),
    });
  });
});

describe('a download that was given up', () => {
  async function abortAfter(byteCount: number, source: ModelSource): Promise<void> {
    const controller = new AbortController();
    hub.fail(weightsFile, { cutAfter: byteCount, until: new Promise(() => {}) });
    const loading = rejection(load({ source, options: { signal: controller.signal } }));
    const patience = { timeout: 30_000 };
    await expect
      .poll(() => weightsPieces().length, patience)
      .toBe(Math.floor(byteCount / pieceBytes));
    controller.abort();
    await loading;
  }

  it.each(['hub', 'folder'])('goes on at the last whole piece (B91): %s', async where => {
    await start();
    const source = where === 'hub' ? modelId : plain();
    await abortAfter(2500, source);
    const { bytes, asked } = await load({ source });
    expect(bytes).toEqual(weights);
    const ranges = hub.requests.flatMap(({ headers }) => headers.range ?? []);
    expect(new Set(ranges)).toEqual(new Set(['bytes=2000-']));
    expect(asked).not.toContain('plain vocab.json GET');
    expect((await load({ source })).bytes).toEqual(weights);
  });

  it('starts anew when the file is another by now (B91)', async () => {
    await start();
    await abortAfter(2500, plain());
    const other = fakeWeights(4400);
    hub.models[modelId] = tinyModel({ [weightsFile]: other });
    expect((await load({ source: plain() })).bytes).toEqual(other);
    expect((await load({ source: plain() })).bytes).toEqual(other);
  });

  it('starts anew when the file is shorter by now (B91)', async () => {
    await start({ etags: 'none' });
    await abortAfter(4500, plain());
    const other = fakeWeights(1200);
    hub.models[modelId] = tinyModel({ [weightsFile]: other });
    expect((await load({ source: plain() })).bytes).toEqual(other);
  });

  it('goes on without ranges, too (B91)', async () => {
    await start({ ranges: false });
    await abortAfter(2500, plain());
    expect((await load({ source: plain() })).bytes).toEqual(weights);
  });
});

describe('what is damaged where it is kept', () => {
  const damages: [string, (name: string) => void][] = [
    ['changed', name => void store.bytes.get(name)?.fill(1, 5, 6)],
    ['cut off', name => void store.bytes.set(name, store.bytes.get(name)!.slice(0, 500))],
    ['empty', name => void store.bytes.set(name, new Uint8Array(0))],
    ['gone', name => void store.bytes.delete(name)],
    [
      'another piece',
      name => void store.bytes.set(name, store.bytes.get(weightsPieces().at(-2)!)!),
    ],
  ];

  it.each(damages)('is found and fetched again: %s', async (_, damage) => {
    await start();
    for (const source of [modelId, plain()]) {
      await load({ source });
      const name = weightsPieces()[2]!;
      damage(name);
      expect((await load({ source })).bytes).toEqual(weights);
      const { bytes, asked } = await load({ source });
      expect(bytes).toEqual(weights);
      expect(asked.filter(file => file.startsWith('cdn'))).toEqual([]);
      store.bytes.clear();
    }
  });

  it('never reaches the model, whatever the damage', async () => {
    await start();
    const damage = fc.tuple(fc.nat(), fc.nat(), fc.constantFrom('flip', 'cut', 'drop'));
    const run = fc.asyncProperty(fc.array(damage, { maxLength: 4 }), async damages => {
      await load();
      for (const [which, where, kind] of damages) {
        const names = [...store.bytes.keys()];
        const name = names[which % names.length];
        const bytes = name === undefined ? undefined : store.bytes.get(name);
        if (name === undefined || !bytes || bytes.length === 0) continue;
        if (kind === 'flip') bytes[where % bytes.length]! ^= 1 << (where % 8);
        if (kind === 'cut') store.bytes.set(name, bytes.slice(0, where % bytes.length));
        if (kind === 'drop') store.bytes.delete(name);
      }
      expect((await load()).bytes).toEqual(weights);
    });
    await fc.assert(run, { numRuns: 25 });
  });

  it('is fetched again once when the reader refuses it, and then never kept', async () => {
    await start();
    await load({ source: plain() });
    // The same to the server's mind, but no model.
    const broken = fakeWeights(5000);
    broken[0] = 0;
    hub.models[modelId] = tinyModel({ [weightsFile]: broken });
    hub.etags = 'none';
    store.bytes.clear();
    expect(await rejection(load({ source: plain() }))).toMatchObject({ code: 'truncated' });
    expect(weightsPieces()).toEqual([]);
    hub.models[modelId] = tinyModel();
    expect((await load({ source: plain() })).bytes).toEqual(weights);
  });

  it('is not kept when it is of no use', async () => {
    await start({ etags: 'none' });
    hub.models[modelId] = tinyModel({ 'vocab.json': '{"broken": ' });
    await rejection(load({ source: plain() }));
    hub.models[modelId] = tinyModel();
    expect((await load({ source: plain() })).bytes).toEqual(weights);
  });

  it('is fetched again when it has not the digest that the caller states', async () => {
    await start();
    hub.models[modelId] = tinyModel({ [weightsFile]: fakeWeights(3000) });
    hub.etags = 'none';
    await load({ source: plain() });
    hub.models[modelId] = tinyModel();
    const { createHash } = await import('node:crypto');
    const digest = createHash('sha256').update(weights).digest('hex');
    const options = { sha256: { [weightsFile]: digest } };
    expect((await load({ source: plain(), options })).bytes).toEqual(weights);
  });
});

describe('a page in place of the weights (B90)', () => {
  it.each([
    ['by its type', { 'Content-Type': 'text/html; charset=utf-8' }],
    ['by its bytes', {}],
  ])('is told %s, and nothing of it is kept', async (_, headers) => {
    await start();
    const body = `<!doctype html><title>Sign in</title>${'<p>'.repeat(1000)}`;
    hub.fail(weightsFile, { body, headers });
    const error = await rejection(load({ source: plain() }));
    expect(error).toMatchObject({
      code: 'load-failed',
      message: expect.stringMatching(/HTML page/),
    });
    expect(weightsPieces()).toEqual([]);
    expect((await load({ source: plain() })).bytes).toEqual(weights);
  });
});

describe('a store that fails', () => {
  it.each([0, 1500, 4000])(
    'for want of room costs no more than a warning (B95): %i',
    async room => {
      await start();
      store.room = room;
      const { bytes, warnings } = await load();
      expect(bytes).toEqual(weights);
      expect(warnings).toEqual([
        { code: 'storage-full', message: expect.stringMatching(/no room to keep the download/) },
      ]);
      expect(weightsPieces().length).toBeLessThan(5);
    },
  );

  it('altogether costs no more than a warning', async () => {
    await start();
    store.failing = new Error('disk on fire');
    const { bytes, warnings } = await load();
    expect(bytes).toEqual(weights);
    expect(warnings).toEqual([
      { code: 'storage-failed', message: expect.stringMatching(/disk on fire/) },
    ]);
  });

  it('is told when it is not there', async () => {
    await start();
    const { bytes, warnings } = await load({ options: { storage: 'opfs' } });
    expect(bytes).toEqual(weights);
    expect(warnings).toMatchObject([{ code: 'storage-failed' }]);
  });
});

describe('loads of the same model at once', () => {
  it('do not disturb each other', async () => {
    await start();
    const held = new Set<string>();
    const lock = async (name: string) => {
      if (held.has(name)) return undefined;
      held.add(name);
      return () => void held.delete(name);
    };
    for (const options of [{ lock }, {}]) {
      store.bytes.clear();
      const loads = await Promise.all([load(options), load(options), load(options)]);
      for (const { bytes, warnings } of loads) {
        expect(bytes).toEqual(weights);
        expect(warnings).toEqual([]);
      }
      expect(held.size).toBe(0);
      expect((await load()).asked).toEqual(['api api']);
    }
  });
});

describe('a directory', () => {
  let directory = '';
  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), 'kvasm-'));
  });
  afterEach(() => rm(directory, { recursive: true }));

  it('keeps downloads in Node, whole files at a time', async () => {
    await start();
    const options = { storage: { directory: join(directory, 'models') } };
    await load({ options });
    const names = await readdir(join(directory, 'models'));
    expect(names.filter(name => !/^[0-9a-f]{32}\.([0-9a-f]{8}\.\d+|json)$/.test(name))).toEqual([]);
    const { bytes, asked } = await load({ options });
    expect(bytes).toEqual(weights);
    expect(asked).toEqual(['api api']);
    for (const name of names) {
      const path = join(directory, 'models', name);
      await writeFile(path, (await readFile(path)).subarray(1));
    }
    expect((await load({ options })).bytes).toEqual(weights);
  });
});

it('keeps a header for each file, which tells where it is from', async () => {
  await start();
  await load();
  const files = Object.values(kept());
  expect(files.length).toBeGreaterThan(3);
  for (const { model, complete } of files) {
    expect({ model, complete }).toEqual({ model: modelId, complete: true });
  }
  expect(kept()['config.json']?.size).toBe(config.length);
  expect(kept()[weightsFile]?.size).toBe(5000);
});

describe('the list of what is kept', () => {
  it('tells of whole and partial files, and deletes them by model', async () => {
    await start();
    const cache = modelCache(store);
    expect([await cache.list(), await cache.size()]).toEqual([[], 0]);
    await load();
    await load({ source: plain() });
    const files = ['config.json', 'merges.txt', weightsFile, 'vocab.json'];
    const list = await cache.list();
    expect(list.map(({ model, file }) => `${model} ${file}`)).toEqual([
      ...files.map(file => `${plain()} ${file}`),
      ...files.map(file => `${modelId} ${file}`),
    ]);
    const kept = list.find(({ file }) => file === weightsFile);
    expect(kept).toMatchObject({ size: 5000, complete: true, savedAt: expect.any(Date) });
    expect(kept?.bytes).toBeGreaterThan(5000);
    expect(await cache.size()).toBe(store.size);

    const before = store.size;
    const freed = await cache.delete(modelId);
    expect(freed).toBe(before - store.size);
    expect(new Set((await cache.list()).map(({ model }) => model))).toEqual(new Set([plain()]));
    expect(await cache.delete(plain(), weightsFile)).toBeGreaterThan(5000);
    expect(await cache.delete('nobody/nothing')).toBe(0);
    store.bytes.set('remains', new Uint8Array(9));
    expect(await cache.clear()).toBeGreaterThan(9);
    expect(store.bytes.size).toBe(0);
  });

  it('is that of a directory in Node, and empty where nothing is kept', async () => {
    await start();
    const directory = await mkdtemp(join(tmpdir(), 'kvasm-'));
    try {
      await load({ options: { storage: { directory } } });
      expect(await modelCache({ directory }).list()).toHaveLength(4);
      expect(await cacheCommand({ directory, remove: undefined })).toMatch(
        /5\.\d kB {2}whole {4}someone\/tiny {2}model\.safetensors\n/,
      );
      expect(await rejection(cacheCommand({ directory, remove: ['a/b'] }))).toMatchObject({
        message: 'nothing is kept of "a/b"',
      });
      expect(await cacheCommand({ directory, remove: [modelId] })).toMatch(
        /^(9|10)\.\d kB freed\n$/,
      );
      expect(await modelCache({ directory }).size()).toBe(0);
      expect(await modelCache().list()).toEqual([]);
    } finally {
      await rm(directory, { recursive: true });
    }
  });

  it('is of a storage that there is', () => {
    expect(() => modelCache('attic' as 'auto')).toThrow(/^storage must be 'auto', 'opfs'/);
  });
});
