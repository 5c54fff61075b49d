import { afterEach, describe, expect, it, vi } from 'vitest';

import type { LoadProgress } from '../../bindings/ts/types.js';
import { FakeWasm } from './fake-wasm-module.js';
import { type Answer, root, serveFiles, weights } from './file-server.js';
import { config, FakePlatform, idle, loadOn } from './harness.js';

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
    expect(reports.at(-1)).toEqual({ phase: 'ready', loaded: 5000, total: 5000 });
    const last = reports.filter(({ phase }) => phase === 'weights').at(-1);
    expect(last).toEqual({ phase: 'weights', loaded: 5000, total: 5000 });
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
    expect(first).toEqual({ phase: 'config', loaded: 0, total: undefined });
    expect(last).toEqual({ phase: 'config', loaded: config.length, total: config.length });
  });

  it('drops a whole that turns out too small (B94)', async () => {
    let at = 0;
    const body = new ReadableStream<Uint8Array>({
      async pull(controller) {
        await idle(60);
        controller.enqueue(new TextEncoder().encode(config.slice(at, at + 4)));
        at += 4;
        if (at >= config.length) controller.close();
      },
    });
    const headers = { 'content-length': '5' };
    serveFiles({ 'config.json': () => new Response(body, { headers }) });
    const totals = new Set<number | undefined>();
    const onProgress = ({ phase, loaded, total }: LoadProgress) => {
      if (phase === 'config' && loaded < config.length) totals.add(total);
    };
    await loadOn(new FakePlatform(new FakeWasm()), root, { onProgress });
    expect(totals).toEqual(new Set([5, undefined]));
  });
});
