import { afterEach, describe, expect, it, vi } from 'vitest';

import { ModelError } from '../../bindings/ts/errors.js';
import type { LoadOptions } from '../../bindings/ts/types.js';
import { FakeWasm, fakeWeights } from './fake-wasm-module.js';
import { root, serveFiles, weights } from './file-server.js';
import { collect, config, FakePlatform, idle, loadOn, modelFiles, rejection } from './harness.js';

const html =
  (status = 200) =>
  () =>
    new Response('<!doctype html><title>Not here</title>', {
      status,
      headers: { 'content-type': 'text/html; charset=utf-8' },
    });

async function load(options: LoadOptions = {}, wasm = new FakeWasm()) {
  const platform = new FakePlatform(wasm);
  const engine = await loadOn(platform, root, options);
  return { engine, wasm, platform };
}

/** The error, after a look that no worker is left. */
async function failedLoad(options: LoadOptions = {}, wasm = new FakeWasm()): Promise<unknown> {
  const platform = new FakePlatform(wasm);
  const error = await rejection(loadOn(platform, root, options));
  expect(platform.alive).toBe(0);
  return error;
}

function chunked(bytes: Uint8Array, size: number): ReadableStream<Uint8Array> {
  let at = 0;
  return new ReadableStream({
    pull(controller) {
      if (at >= bytes.length) controller.close();
      else controller.enqueue(bytes.slice(at, at + size));
      at += size;
    },
  });
}

afterEach(() => vi.unstubAllGlobals());

describe('Engine.load', () => {
  it('hands every byte of the weights over, in order', async () => {
    serveFiles({ 'model.safetensors': () => new Response(chunked(weights, 777)) });
    const { wasm, engine } = await load({}, new FakeWasm({ stagingSize: 500 }));
    expect(Uint8Array.from(wasm.received)).toEqual(weights);
    expect(wasm.loaders).toBe(0);
    expect(wasm.engineOptions).toEqual({
      dtype: 1,
      contextLength: 0,
      window: 0,
      kvDtype: 0,
      kvBytes: 0,
      prefixCache: true,
      prefillChunk: 64,
    });
    expect(engine.info).toMatchObject({ endOfText: 256, variant: 'simd', threads: 1 });
    expect(engine.info.config).not.toHaveProperty('eosTokenId');
  });

  it('reads the memory anew after each piece, as growth replaces it (B105)', async () => {
    serveFiles();
    const { wasm, engine } = await load({}, new FakeWasm({ growing: true, stagingSize: 300 }));
    expect(Uint8Array.from(wasm.received)).toEqual(weights);
    expect((await engine.memory()).heap).toBe(wasm.heap.length);
  });

  it('takes files as blobs, buffers and arrays, and leaves them to their owner', async () => {
    const wasm = new FakeWasm();
    const whole = new Uint8Array(6000);
    whole.set(weights, 500);
    const buffer = new TextEncoder().encode(config).buffer;
    const engine = await loadOn(
      new FakePlatform(wasm),
      modelFiles({
        'config.json': buffer,
        'model.safetensors': whole.subarray(500, 5500),
      }),
    );
    expect(Uint8Array.from(wasm.received)).toEqual(weights);
    expect(whole.length).toBe(6000);
    expect(buffer.byteLength).toBe(config.length);
    expect(await collect(engine.generate('a', { maxTokens: 2 }))).toHaveLength(2);
  });

  it('passes contextLength on, and refuses one beyond the position table before the weights', async () => {
    const asked = serveFiles();
    const { wasm } = await load({ contextLength: 64 });
    expect(wasm.engineOptions?.contextLength).toBe(64);
    asked.length = 0;
    expect(await failedLoad({ contextLength: 129 })).toMatchObject({
      code: 'invalid-argument',
      message: expect.stringMatching(/from 1 to 128.*not 129/),
    });
    expect(asked).not.toContain('model.safetensors');
  });

  it('passes the options of the cache on, and tells of them', async () => {
    serveFiles();
    const plain = await load();
    expect(plain.engine.info).toMatchObject({
      dtype: 'q8',
      contextLength: 128,
      window: undefined,
      kvDtype: 'f32',
      kvBytes: 128 * 128,
      prefixCache: true,
      prefillChunk: 64,
    });
    const given = {
      dtype: 'q4',
      window: 20,
      kvDtype: 'q8',
      kvBytes: 9999,
      prefixCache: false,
      prefillChunk: 7,
    } as const;
    const { engine, wasm } = await load(given);
    expect(wasm.engineOptions).toEqual({ ...given, dtype: 2, contextLength: 0, kvDtype: 2 });
    expect(engine.info).toMatchObject({ ...given, kvBytes: 128 * 128 });
    const wide = await load({ window: 128, prefillChunk: 1000 });
    expect(wide.engine.info).toMatchObject({ window: undefined, prefillChunk: 128 });
  });

  it('does not blame a file for an option that does not fit', async () => {
    serveFiles();
    const message = 'kvBytes is 5, but one block of 16 tokens takes 2048 bytes';
    const finishStatus = { code: 'invalid-argument', message };
    expect(await failedLoad({ kvBytes: 5 }, new FakeWasm({ finishStatus }))).toMatchObject({
      code: 'invalid-argument',
      message,
    });
  });
});

describe('the tokenizer', () => {
  it('is tokenizer.json where there is one', async () => {
    const asked = serveFiles({ 'tokenizer.json': () => new Response('{}') });
    expect(await failedLoad()).toMatchObject({
      code: 'invalid-tokenizer',
      message: expect.stringMatching(/^https:.*tokenizer\.json: /),
    });
    expect(asked).not.toContain('vocab.json');
  });

  it('is vocab.json and merges.txt where a server has a page instead', async () => {
    serveFiles({ 'tokenizer.json': html() });
    const { engine } = await load();
    expect(engine.info.endOfText).toBe(256);
  });

  it('does not fall back when the server fails', async () => {
    serveFiles({ 'tokenizer.json': () => new Response('', { status: 503 }) });
    expect(await failedLoad()).toMatchObject({
      code: 'load-failed',
      message: expect.stringMatching(/tokenizer\.json.*503/),
    });
  });

  it('is missed when neither is there', async () => {
    serveFiles({ 'vocab.json': undefined });
    expect(await failedLoad()).toMatchObject({
      code: 'invalid-tokenizer',
      message: expect.stringMatching(
        /neither .*tokenizer\.json \(HTTP status 404 Not Found\) nor .*vocab\.json/,
      ),
    });
  });
});

describe('a load that fails', () => {
  it.each(['config.json', 'model.safetensors'])('names a missing %s and the status', async name => {
    serveFiles({ [name]: undefined });
    const error = await failedLoad();
    expect(error).toBeInstanceOf(ModelError);
    const message = expect.stringMatching(`${root}/${name}.*HTTP status 404 Not Found`);
    expect(error).toMatchObject({ code: 'load-failed', message });
  });

  it.each(['config.json', 'model.safetensors'])('tells a page from %s (B90)', async name => {
    serveFiles({ [name]: html() });
    expect(await failedLoad()).toMatchObject({
      code: 'load-failed',
      message: expect.stringMatching(/HTML page/),
    });
    serveFiles({ [name]: () => new Response('\n<!DOCTYPE html>\n<html lang="en"></html>') });
    expect(await failedLoad()).toMatchObject({
      code: 'load-failed',
      message: expect.stringMatching(/HTML page/),
    });
    serveFiles();
    expect(await collect((await load()).engine.generate('a', { maxTokens: 1 }))).toHaveLength(1);
  });

  it('takes weights that begin with the byte of a page', async () => {
    const odd = fakeWeights(256 + 0x3c);
    expect(odd[0]).toBe(0x3c);
    serveFiles({ 'model.safetensors': () => new Response(odd) });
    await load();
  });

  it('says that the network failed, at the start and in the middle', async () => {
    const lost = () => Promise.reject(new TypeError('fetch failed', { cause: new Error('reset') }));
    serveFiles({ 'config.json': lost });
    expect(await failedLoad()).toMatchObject({
      code: 'load-failed',
      message: expect.stringMatching(
        /config\.json: cannot be fetched \(TypeError: fetch failed; Error: reset\)/,
      ),
    });
    const cut = () =>
      new ReadableStream({
        start(controller) {
          controller.enqueue(weights.slice(0, 100));
          setTimeout(() => controller.error(new TypeError('network error')), 5);
        },
      });
    serveFiles({ 'model.safetensors': () => new Response(cut()) });
    expect(await failedLoad()).toMatchObject({
      code: 'load-failed',
      message: expect.stringMatching(/network error/),
    });
  });

  it('hands on what the reader says of the file', async () => {
    serveFiles({ 'model.safetensors': () => new Response(weights.slice(0, 4000)) });
    expect(await failedLoad()).toMatchObject({
      name: 'ModelError',
      code: 'truncated',
      message: `${root}/model.safetensors: the file ends after 4000 bytes`,
    });
    serveFiles();
    const wasm = new FakeWasm({
      configStatus: { code: 'invalid-config', message: 'config.json: no n_head' },
    });
    expect(await failedLoad({}, wasm)).toMatchObject({
      code: 'invalid-config',
      message: `${root}/config.json: no n_head`,
    });
    const full = new FakeWasm({ finishStatus: { code: 'out-of-memory', message: 'full' } });
    expect(await failedLoad({}, full)).toMatchObject({ name: 'GenerationError' });
  });

  it('is aborted at any time, with the reason', async () => {
    const reason = new Error('closed');
    serveFiles();
    expect(await rejection(load({ signal: AbortSignal.abort(reason) }))).toBe(reason);
    const never = new Response(new ReadableStream({ pull: () => new Promise(() => {}) }));
    for (const name of ['config.json', 'vocab.json', 'model.safetensors']) {
      serveFiles({ [name]: () => never.clone() });
      const controller = new AbortController();
      const load = failedLoad({ signal: controller.signal });
      await idle(5);
      controller.abort(reason);
      expect(await load).toBe(reason);
    }
  });

  it('passes on what onProgress throws', async () => {
    serveFiles();
    const error = new Error('the page is gone');
    const onProgress = () => {
      throw error;
    };
    expect(await failedLoad({ onProgress })).toBe(error);
  });
});
