import { afterEach, describe, expect, it, vi } from 'vitest';

import type { WasmModule } from '../../bindings/ts/wasm-module.js';
import { fetchWasm } from '../../bindings/ts/worker/fetch-wasm.js';
import { instantiate } from '../../bindings/ts/worker/instantiate.js';
import { FakeWasm } from './fake-wasm-module.js';
import { rejection } from './harness.js';

const url = 'https://page.test/kvasm.wasm';
const emptyModule = Uint8Array.of(0, 0x61, 0x73, 0x6d, 1, 0, 0, 0);

function answer(body: BodyInit, type: string | undefined, status = 200): void {
  const headers: HeadersInit = type === undefined ? {} : { 'content-type': type };
  vi.stubGlobal('fetch', async () => new Response(body, { status, headers }));
}

afterEach(() => {
  vi.unstubAllGlobals();
  vi.restoreAllMocks();
});

describe('fetchWasm', () => {
  it('compiles while it fetches under the right type', async () => {
    const streaming = vi.spyOn(WebAssembly, 'compileStreaming');
    answer(emptyModule, 'application/wasm');
    expect(await fetchWasm(url)).toBeInstanceOf(WebAssembly.Module);
    expect(streaming).toHaveBeenCalledOnce();
  });

  it.each(['application/octet-stream', 'text/plain', 'application/wasm; charset=utf-8', undefined])(
    'compiles what is served as %s (B111)',
    async type => {
      answer(emptyModule, type);
      expect(await fetchWasm(url)).toBeInstanceOf(WebAssembly.Module);
    },
  );

  it('names the address of what it cannot have', async () => {
    answer('no', 'text/plain', 404);
    expect(await rejection(fetchWasm(url))).toMatchObject({
      code: 'load-failed',
      message: `${url}: cannot be fetched (HTTP status 404).`,
    });
    answer('<!doctype html>', 'text/html');
    expect(await rejection(fetchWasm(url))).toMatchObject({
      code: 'load-failed',
      message: expect.stringMatching(/kvasm\.wasm could not be compiled \(CompileError/),
    });
  });
});

describe('instantiate', () => {
  const compiled = new WebAssembly.Module(emptyModule);
  const wasm: WasmModule = new FakeWasm();

  it('gives the instance to the glue', async () => {
    const made = instantiate(
      options =>
        new Promise(resolve => {
          options.instantiateWasm({}, (instance, module) => {
            expect(instance).toBeInstanceOf(WebAssembly.Instance);
            expect(module).toBe(compiled);
            resolve(wasm);
          });
        }),
      compiled,
    );
    expect(await made).toBe(wasm);
  });

  it('does not wait for ever when the instance cannot be made', async () => {
    vi.spyOn(WebAssembly, 'instantiate').mockRejectedValue(new WebAssembly.LinkError('no import'));
    const made = instantiate(options => {
      options.instantiateWasm({}, () => {});
      return new Promise(() => {});
    }, compiled);
    expect(await rejection(made)).toBeInstanceOf(WebAssembly.LinkError);
  });

  it('is out of memory when the memory cannot be made', async () => {
    const made = instantiate(() => Promise.reject(new RangeError('allocation failed')), compiled);
    expect(await rejection(made)).toMatchObject({
      name: 'GenerationError',
      code: 'out-of-memory',
      message: expect.stringMatching(/allocation failed/),
    });
  });
});
