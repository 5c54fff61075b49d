import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';

import type { Platform } from '../../bindings/ts/platform.js';
import { browserPlatform } from '../../bindings/ts/platform-browser.js';
import { nodePlatform } from '../../bindings/ts/platform-node.js';
import { locateModel, urlInFolder } from '../../bindings/ts/source.js';
import type { LoadOptions, ModelSource } from '../../bindings/ts/types.js';
import { readListing } from '../../bindings/ts/worker/download/hub.js';
import { openInNode } from '../../bindings/ts/worker/files-node.js';
import { rejection } from './harness.js';

const inBrowser = (source: unknown, options: LoadOptions = {}) =>
  locateModel(source as ModelSource, options, browserPlatform);
const inNode = (source: unknown, options: LoadOptions = {}) =>
  locateModel(source as ModelSource, options, nodePlatform);

/** Where a browser looks for config.json. */
async function configUrl(source: unknown, options: LoadOptions = {}): Promise<unknown> {
  const model = await inBrowser(source, options);
  switch (model.kind) {
    case 'hub':
      return `${readListing(model, '').folder}/config.json`;
    case 'folder':
      return urlInFolder(model.url, 'config.json');
    case 'files':
      return Object(model.files['config.json']).url;
    default:
      return model;
  }
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
    ['o-c/gpt2@v1.0', 'https://huggingface.co/o-c/gpt2/resolve/v1.0/config.json'],
    ['o-c/gpt2@refs/pr/1', 'https://huggingface.co/o-c/gpt2/resolve/refs%2Fpr%2F1/config.json'],
    ['https://huggingface.co/a/b', 'https://huggingface.co/a/b/resolve/main/config.json'],
    ['https://huggingface.co/a/b/tree/v2', 'https://huggingface.co/a/b/resolve/v2/config.json'],
    [new URL('https://a.test/gpt2/'), 'https://a.test/gpt2/config.json'],
  ])('is found at %s', async (source, url) => {
    expect(await configUrl(source)).toBe(url);
  });

  it('is found on another hub, at a revision', async () => {
    const options = { hubUrl: 'https://hub.test/mirror/', revision: 'refs/pr/1' };
    const url = 'https://hub.test/mirror/a/b/resolve/refs%2Fpr%2F1/config.json';
    expect(await configUrl('a/b', options)).toBe(url);
    expect(await configUrl('https://hub.test/mirror/a/b', options)).toBe(url);
  });

  it.each([
    ['https://a.test/m/model-q8.safetensors', 'https://a.test/m/', 'model-q8.safetensors'],
    ['https://a.test/m/gpt2.Q8_0.gguf?x=1', 'https://a.test/m/?x=1', 'gpt2.Q8_0.gguf'],
    [
      './m/model.safetensors.index.json',
      'https://page.test/app/m/',
      'model.safetensors.index.json',
    ],
  ])('is found by its weights at %s', async (source, url, file) => {
    expect(await inBrowser(source)).toEqual({ kind: 'folder', url, file });
  });

  it('is found by the address of a file on the hub', async () => {
    const source = 'https://huggingface.co/a/b/resolve/main/sub/model.gguf?download=true';
    expect(await inBrowser(source)).toEqual({
      kind: 'hub',
      hubUrl: 'https://huggingface.co/',
      id: 'a/b',
      revision: 'main',
      file: 'sub/model.gguf',
    });
  });

  it('is taken file by file', async () => {
    expect(await configUrl({ ...complete, 'README.md': 'x' })).toBe('https://page.test/app/c');
    const model = await inBrowser({ ...complete, 'README.md': 'x' });
    expect(model).toMatchObject({ kind: 'files', file: 'model.safetensors' });
    expect(Object.keys(Object(model).files)).toEqual(Object.keys(complete));
  });

  it('is taken from a list of files, those nearest to the top first', async () => {
    const file = (name: string, content: string, path = '') =>
      Object.defineProperty(new File([content], name), 'webkitRelativePath', { value: path });
    const names = ['config.json', 'vocab.json', 'merges.txt', 'model.safetensors', 'README.md'];
    const files = names.map(name => file(name, 'top', `m/${name}`));
    const model = await inBrowser([file('config.json', 'deep', 'm/onnx/config.json'), ...files]);
    const given = Object(model).files;
    expect(Object.keys(given).sort()).toEqual(names.slice(0, 4).sort());
    expect(await given['config.json'].blob.text()).toBe('top');
  });

  it('is taken from a directory that was picked', async () => {
    const handles = Object.keys(complete).map(name => ({
      kind: 'file',
      getFile: async () => new File(['x'], name),
    }));
    const directory = {
      kind: 'directory',
      async *values() {
        yield* [...handles, { kind: 'directory' }];
      },
    };
    expect(Object.keys(Object(await inBrowser(directory)).files).sort()).toEqual(
      Object.keys(complete).sort(),
    );
  });

  it('is taken from a drop, with the files of dropped folders', async () => {
    const file = (name: string) => new File(['x'], name);
    const entries = Object.keys(complete).map(name => ({
      isFile: true,
      file: (done: (file: File) => void) => done(file(name)),
    }));
    const batches: object[][] = [entries.slice(0, 2), entries.slice(2), []];
    const createReader = () => ({
      readEntries: (done: (entries: object[]) => void) => done(batches.shift() ?? []),
    });
    const folder = { isDirectory: true, isFile: false, name: 'm', createReader };
    class DataTransfer {
      files = [file('m'), file('generation_config.json')];
      items = [{ webkitGetAsEntry: () => folder }, { webkitGetAsEntry: () => null }];
    }
    vi.stubGlobal('DataTransfer', DataTransfer);
    const model = await inBrowser(new DataTransfer());
    expect(Object.keys(Object(model).files).sort()).toEqual(
      [...Object.keys(complete), 'generation_config.json'].sort(),
    );
  });

  it.each([
    ['a blob', () => new Blob(['x']), 'blob'],
    ['a file', () => new File(['x'], 'my.gguf'), 'blob'],
    ['a buffer', () => new ArrayBuffer(8), 'bytes'],
    ['an array', () => new Uint8Array(8), 'bytes'],
    ['a response', () => new Response('x'), 'stream'],
    ['a stream', () => new Response('x').body, 'stream'],
  ])('is GGUF when it is %s', async (_, make, kind) => {
    const model = Object(await inBrowser(make()));
    expect(model.kind).toBe('files');
    expect(model.file).toMatch(/^(my|model)\.gguf$/);
    expect(model.files[model.file].kind).toBe(kind);
  });

  it('has the file that the option names', async () => {
    const files = { 'a.gguf': new Blob(), 'b.gguf': new Blob() };
    expect(await inBrowser(files, { file: 'b.gguf' })).toMatchObject({ file: 'b.gguf' });
    expect(await rejection(inBrowser(files))).toMatchObject({
      code: 'load-failed',
      message: expect.stringMatching(/choose with the option file: a\.gguf, b\.gguf/),
    });
    expect(await inBrowser('a/b', { file: 'b.gguf' })).toMatchObject({ file: 'b.gguf' });
  });

  it.each([
    [{}, /lack config\.json, model\.safetensors, tokenizer\.json .*given: none/],
    [{ 'config.json': 'c', 'tokenizer.json': 't' }, /lack model\.safetensors;/],
    [{ ...complete, 'tokenizer.json': undefined }, /lack tokenizer\.json \(or vocab\.json and/],
    [{ ...complete, 'config.json': 5 }, /config\.json must be a URL.* not 5/],
    [[new File([], 'model.safetensors')], /lack config\.json/],
    [new File([], 'model.safetensors'), /lack config\.json/],
    [new Float32Array(2), /list of files.*not an object \(Float32Array\)/],
    [null, /not null/],
    [undefined, /not undefined/],
    [5, /not 5/],
    ['', /not ""/],
    ['https://', /not a URL/],
    ['what is this', /not "what is this"/],
  ])('is refused: %o', async (source, message) => {
    expect(await rejection(inBrowser(source))).toMatchObject({
      name: 'InvalidArgumentError',
      message: expect.stringMatching(message),
    });
  });

  it('is refused when it names two revisions', async () => {
    expect(await rejection(inBrowser('a/b@one', { revision: 'two' }))).toMatchObject({
      name: 'InvalidArgumentError',
      message: 'The model names the revision "one", and the option revision "two".',
    });
  });

  it('is refused when its stream is being read, or its response is an error', async () => {
    const response = new Response('x');
    response.body?.getReader();
    expect(await rejection(inBrowser(response))).toMatchObject({ code: 'invalid-argument' });
    const missing = new Response('x', { status: 404, statusText: 'Not Found' });
    expect(await rejection(inBrowser(missing))).toMatchObject({
      code: 'load-failed',
      message: 'model.gguf: the response is an error (HTTP status 404 Not Found).',
    });
  });
});

describe('a model in Node', () => {
  let directory = '';
  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), 'kvasm-'));
  });
  afterAll(() => rm(directory, { recursive: true }));

  it('is found in a directory, by path or by URL', async () => {
    for (const source of [directory, `${directory}/`, pathToFileURL(directory)]) {
      const found = { kind: 'directory', path: directory, file: undefined };
      expect(await inNode(source)).toEqual(found);
      expect(await inNode(String(source))).toEqual(found);
    }
  });

  it('is found by the path of its weights', async () => {
    const path = join(directory, 'tiny.safetensors');
    await writeFile(path, 'x');
    for (const source of [path, pathToFileURL(path)]) {
      const found = { kind: 'directory', path: directory, file: 'tiny.safetensors' };
      expect(await inNode(source)).toEqual(found);
    }
  });

  it('is a directory before it is a hub id', async () => {
    expect(await inNode('bindings/ts')).toMatchObject({ path: resolve('bindings/ts') });
    expect(await inNode('nobody/has-this')).toMatchObject({ kind: 'hub', id: 'nobody/has-this' });
  });

  it.each(['./no/such', 'no-such.gguf'])('says that %s is not there', async path => {
    expect(await rejection(inNode(path))).toMatchObject({
      code: 'load-failed',
      message: `There is no directory or file of weights ${JSON.stringify(path)}.`,
    });
  });

  it('is taken file by file, as paths and URLs', async () => {
    const files = { ...complete, 'config.json': 'https://a.test/c', 'tokenizer.json': 'x/t' };
    expect(Object(await inNode(files)).files).toMatchObject({
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

describe('a platform', () => {
  it.each<[string, Platform]>([
    ['browser', browserPlatform],
    ['Node', nodePlatform],
  ])('keeps downloads in a directory in Node only: %s', (name, platform) => {
    if (name === 'Node') expect(platform.resolveDirectory('x')).toBe(resolve('x'));
    else
      expect(() => platform.resolveDirectory('x')).toThrow(/in a browser, not the directory "x"/);
  });
});
