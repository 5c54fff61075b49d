import { afterEach, describe, expect, it, vi } from 'vitest';

import type { LoadProgress } from '../../bindings/ts/types.js';
import { FakeWasm } from './fake-wasm-module.js';
import { type Answer, root, serveFiles, weights } from './file-server.js';
import { config, FakePlatform, idle, loadOn, merges, modelFiles, vocab } from './harness.js';

afterEach(() => vi.unstubAllGlobals());

describe('progress', () => {
  async function progressOf(answer: Answer, headers: HeadersInit = {}): Promise<LoadProgress[]> {
    const configAnswer = () => new Response(config, { headers });
    serveFiles({ 'config.json': configAnswer, 'model.safetensors': answer });
    const reports: LoadProgress[] = [];
    const onProgress = (progress: LoadProgress) => reports.push(progress);
    await loadOn(new FakePlatform(new FakeWasm()), root, { onProgress });
    return reports;
  }

  const slowly = (headers?: HeadersInit) => () => {
    let at = 0;
    const body = new ReadableStream<Uint8Array>({
      async pull(controller) {
        await idle(3);
        controller.enqueue(weights.slice(at, at + 100));
        at += 100;
        if (at >= weights.length) controller.close();
      },
    });
    return new Response(body, headers ? { headers } : {});
  };

  it('goes through the phases, and from nothing to all of each file', async () => {
    const reports = await progressOf(() => new Response(weights));
    const phases = reports.map(({ phase }) => phase);
    expect([...new Set(phases)]).toEqual(['config', 'tokenizer', 'weights', 'ready']);
    const whole = new Blob([config, vocab, merges]).size + 5000;
    const overall = { loaded: whole, total: whole };
    const file = 'model.safetensors';
    const ready = { phase: 'ready', file: undefined, loaded: 5000, total: 5000, overall };
    expect(reports.at(-1)).toEqual(ready);
    const last = reports.filter(({ phase }) => phase === 'weights').at(-1);
    expect(last).toEqual({ phase: 'weights', file, loaded: 5000, total: 5000, overall });
  });

  it('reports now and then only', async () => {
    const startedAt = performance.now();
    const reports = (await progressOf(slowly())).filter(({ phase }) => phase === 'weights');
    expect(reports.length).toBeGreaterThan(3);
    expect(reports.length).toBeLessThan(3 + (performance.now() - startedAt) / 50);
  });

  it.each([
    ['absent', {}],
    ['too small', { 'content-length': '12' }],
    ['of the compressed bytes', { 'content-length': '9000', 'content-encoding': 'gzip' }],
    ['no number', { 'content-length': 'many' }],
  ])('is never above the whole or NaN with a Content-Length %s (B94)', async (_, headers) => {
    const reports = await progressOf(slowly(headers), headers);
    for (const { loaded, total } of reports) {
      expect(loaded).toBeGreaterThanOrEqual(0);
      if (total !== undefined) expect(loaded).toBeLessThanOrEqual(total);
    }
    const middle = reports.filter(({ phase, loaded }) => phase === 'weights' && loaded > 0);
    expect(new Set(middle.map(({ total }) => total))).toEqual(new Set([5000]));
  });

  it('has no whole where the length is that of compressed bytes (B94)', async () => {
    const headers = { 'content-length': '15', 'content-encoding': 'gzip' };
    const [first, last] = await progressOf(() => new Response(weights), headers);
    expect(first).toMatchObject({ file: 'config.json', loaded: 0, total: undefined });
    const { length } = config;
    expect(last).toMatchObject({ file: 'config.json', loaded: length, total: length });
  });

  it('drops a whole that turns out too small (B94)', async () => {
    const long = `${config}${' '.repeat(200)}`;
    let at = 0;
    const body = new ReadableStream<Uint8Array>({
      async pull(controller) {
        await idle(60);
        controller.enqueue(new TextEncoder().encode(long.slice(at, at + 70)));
        at += 70;
        if (at >= long.length) controller.close();
      },
    });
    const headers = { 'content-length': '75' };
    serveFiles({ 'config.json': () => new Response(body, { headers }) });
    const totals = new Set<number | undefined>();
    const onProgress = ({ file, loaded, total }: LoadProgress) => {
      if (file === 'config.json' && loaded < long.length) totals.add(total);
    };
    await loadOn(new FakePlatform(new FakeWasm()), root, { onProgress });
    expect(totals).toEqual(new Set([75, undefined]));
  });

  it('knows the whole of all files where their sizes are known', async () => {
    const reports: LoadProgress[] = [];
    const onProgress = (progress: LoadProgress) => reports.push(progress);
    const files = modelFiles();
    await loadOn(new FakePlatform(new FakeWasm()), files, { onProgress });
    const totals = reports.map(({ overall }) => overall.total);
    const last = totals.at(-1);
    // Blobs tell their size when they are opened, and the last one is the weights.
    const whole = reports.filter(({ phase }) => phase === 'weights').map(({ overall }) => overall);
    for (const { loaded, total } of whole) {
      expect(total).toBe(last);
      expect(loaded).toBeLessThanOrEqual(total ?? 0);
    }
    const loaded = reports.map(({ overall }) => overall.loaded);
    expect(loaded).toEqual([...loaded].sort((a, b) => a - b));
  });
});
