import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';

import { browserPlatform } from '../../bindings/ts/platform-browser.js';
import { nodePlatform } from '../../bindings/ts/platform-node.js';
import type { LoadOptions, ModelSource } from '../../bindings/ts/types.js';
import { openInNode } from '../../bindings/ts/worker/files-node.js';
import { rejection } from './harness.js';

async function configUrl(source: ModelSource, options: LoadOptions = {}): Promise<unknown> {
  const file = (await browserPlatform.locate(source, options))['config.json'];
  return file?.kind === 'url' ? file.url : file;
}

const complete = { 'config.json': 'c', 'tokenizer.json': 't', 'model.safetensors': 'm' };

describe('a model in a browser', () => {
  vi.stubGlobal('document', { baseURI: 'https://page.test/app/index.html' });
  afterAll(() => vi.unstubAllGlobals());

  it.each([
    ['https://a.test/gpt2', 'https://a.test/gpt2/config.json'],
    ['https://a.test/gpt2/?key=1', 'https://a.test/gpt2/config.json?key=1'],
    ['https://a.test', 'https://a.test/config.json'],
    ['./models/a', 'https://page.test/app/models/a/config.json'],
    ['../models/a/', 'https://page.test/models/a/config.json'],
    ['/models', 'https://page.test/models/config.json'],
    ['models/', 'https://page.test/app/models/config.json'],
    ['gpt2', 'https://huggingface.co/gpt2/resolve/main/config.json'],
    ['o-c/gpt2.x', 'https://huggingface.co/o-c/gpt2.x/resolve/main/config.json'],
  ])('is found at %s', async (source, url) => {
    expect(await configUrl(source)).toBe(url);
  });

  it('is found on another hub, at a revision', async () => {
    const options = { hubUrl: 'https://hub.test/mirror/', revision: 'refs/pr/1' };
    expect(await configUrl('a/b', options)).toBe(
      'https://hub.test/mirror/a/b/resolve/refs%2Fpr%2F1/config.json',
    );
  });

  it('is taken file by file', async () => {
    expect(await configUrl({ ...complete, 'README.md': 'x' })).toBe('https://page.test/app/c');
    const locations = await browserPlatform.locate(complete, {});
    expect(Object.keys(locations)).toEqual(Object.keys(complete));
  });

  it.each([
    [{}, /lack config\.json; given: none/],
    [{ 'config.json': 'c', 'tokenizer.json': 't' }, /lack model\.safetensors/],
    [{ ...complete, 'tokenizer.json': undefined }, /lack tokenizer\.json, or vocab\.json and/],
    [{ ...complete, 'config.json': 5 }, /config\.json must be a URL.* not 5/],
    [new Blob(), /files by name.*not an object \(Blob\)/],
    [new ArrayBuffer(8), /files by name.*not an object \(ArrayBuffer\)/],
    [null, /not null/],
    [undefined, /not undefined/],
    ['', /not ""/],
    ['https://', /not a URL/],
    ['what is this', /not "what is this"/],
  ])('is refused: %o', async (source, message) => {
    const error = await rejection(browserPlatform.locate(source as ModelSource, {}));
    expect(error).toMatchObject({
      name: 'InvalidArgumentError',
      message: expect.stringMatching(message),
    });
  });
});

describe('a model in Node', () => {
  let directory = '';
  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), 'kvasm-'));
  });
  afterAll(() => rm(directory, { recursive: true }));
  afterEach(() => vi.restoreAllMocks());

  const configOf = async (source: ModelSource) =>
    (await nodePlatform.locate(source, {}))['config.json'];

  it('is found in a directory, by path or by URL', async () => {
    const path = join(directory, 'config.json');
    expect(await configOf(directory)).toEqual({ kind: 'path', path });
    expect(await configOf(`${directory}/`)).toEqual({ kind: 'path', path });
    expect(await configOf(pathToFileURL(directory))).toEqual({ kind: 'path', path });
    expect(await configOf(pathToFileURL(directory).href)).toEqual({ kind: 'path', path });
  });

  it('is a directory before it is a hub id', async () => {
    expect(await configOf('bindings/ts')).toEqual({
      kind: 'path',
      path: resolve('bindings/ts/config.json'),
    });
    expect(await configOf('nobody/has-this')).toEqual({
      kind: 'url',
      url: 'https://huggingface.co/nobody/has-this/resolve/main/config.json',
    });
  });

  it('says that a directory is not there', async () => {
    expect(await rejection(configOf('./no/such') as Promise<unknown>)).toMatchObject({
      code: 'load-failed',
      message: 'There is no directory "./no/such".',
    });
  });

  it('is taken file by file, as paths and URLs', async () => {
    const files = { ...complete, 'config.json': 'https://a.test/c', 'tokenizer.json': 'x/t' };
    expect(await nodePlatform.locate(files, {})).toMatchObject({
      'config.json': { kind: 'url', url: 'https://a.test/c' },
      'tokenizer.json': { kind: 'path', path: resolve('x/t') },
    });
  });

  it('is read in pieces, and its errors name the file', async () => {
    const path = join(directory, 'model.safetensors');
    await writeFile(path, new Uint8Array(3_000_000).fill(7));
    const file = await openInNode('model.safetensors', { kind: 'path', path });
    if ('missing' in file) throw new Error(file.missing);
    expect(file.size).toBe(3_000_000);
    let total = 0;
    for await (const chunk of file.chunks) {
      expect(chunk.length).toBeLessThanOrEqual(1 << 20);
      total += chunk.length;
    }
    expect(total).toBe(3_000_000);

    const gone = await openInNode('config.json', { kind: 'path', path: `${path}.gone` });
    expect(gone).toEqual({ label: `${path}.gone`, missing: 'no such file' });
    const unreadable = async () => {
      const opened = await openInNode('config.json', { kind: 'path', path: directory });
      if ('chunks' in opened) for await (const _ of opened.chunks);
    };
    expect(await rejection(unreadable())).toMatchObject({ code: 'load-failed' });
  });
});
