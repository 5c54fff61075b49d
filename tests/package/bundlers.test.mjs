// The examples as their readers would build and serve them, from the packed package, in Chromium.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { cp, readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { promisify } from 'node:util';
import { build, createServer, preview } from 'vite';
import webpack from 'webpack';
import { launchChromium, openPage } from '../browser/support/chromium.mjs';
import { isolation, serve } from '../browser/support/static-server.mjs';
import { makeProject, repository } from './support/packed-project.mjs';

const run = promisify(execFile);
const fairyTale = join(repository, 'models/fairy-tale');
const beginning = 'Once upon a time';
// Many hosts know no type for WebAssembly (B111).
const types = { '.wasm': 'application/octet-stream' };
let browser;
let project;

before(async () => {
  project = await makeProject();
  browser = await launchChromium();
});

after(async () => {
  await browser?.close();
  await project?.remove();
});

/** A copy of an example, with the package where `npm install` would put it. */
async function copyExample(name) {
  const folder = join(project.folder, name);
  await cp(join(repository, 'examples', name), folder, { recursive: true });
  await cp(project.installed, join(folder, 'node_modules/kvasm'), { recursive: true });
  return folder;
}

/** Opens an example, and returns the text it writes; every .wasm that it fetched was one, and they were so many. */
async function storyOf(url, { click = false, isolated = false, wasmFiles = 1 } = {}) {
  const { page, failures, close } = await openPage(browser);
  const modules = [];
  page.on('response', response => {
    if (new URL(response.url()).pathname.endsWith('.wasm')) modules.push(response.body());
  });
  try {
    await page.goto(new URL('?model=/model/', url).href);
    if (click) await page.click('button');
    const done = await page.waitForFunction(() => {
      const story = document.querySelector('#story');
      const status = document.querySelector('#status')?.textContent ?? '';
      if (story.dataset.done || /^\d+ tokens$/.test(status)) return story.textContent;
      // Whatever else is shown in the end is an error's message.
      return document.forms[0]?.inert === false && status ? `failed: ${status}` : '';
    });
    const magic = (await Promise.all(modules)).map(bytes => bytes.toString('hex', 0, 4));
    assert.deepEqual(magic, Array(wasmFiles).fill('0061736d'));
    assert.deepEqual(failures, []);
    assert.equal(await page.evaluate(() => crossOriginIsolated), isolated);
    return await done.jsonValue();
  } finally {
    await close();
  }
}

function assertStory(text) {
  assert.ok(text.startsWith(beginning), text);
  assert.ok(text.length > beginning.length + 20, text);
}

/** The story of a built example, on a host with a strict Content-Security-Policy. */
async function storyServed(folders, path = '/', { headers = {}, ...options } = {}) {
  const server = await serve({ folders: { '/model/': fairyTale, ...folders }, types, headers });
  try {
    return await storyOf(new URL(path, server.url), options);
  } finally {
    await server.close();
  }
}

/** With and without isolation, and so with and without threads. */
async function assertStories(folders, path, options) {
  assertStory(await storyServed(folders, path, options));
  const isolated = { headers: isolation, isolated: true };
  assertStory(await storyServed(folders, path, { ...options, ...isolated }));
}

test('Vite: the dev server, the build and the preview generate without configuration (B109)', async t => {
  const root = await copyExample('vite');
  await cp(fairyTale, join(root, 'public/model'), { recursive: true });
  const base = { root, configFile: false, logLevel: 'warn' };
  const host = '127.0.0.1';

  await t.test('dev', async () => {
    for (const headers of [{}, isolation]) {
      const server = await createServer({ ...base, server: { host, port: 0, headers } });
      try {
        await server.listen();
        const isolated = headers === isolation;
        const story = await storyOf(server.resolvedUrls.local[0], { click: true, isolated });
        assertStory(story);
      } finally {
        await server.close();
      }
    }
  });

  await t.test('build, under a strict Content-Security-Policy (B108)', async () => {
    await build(base);
    await assertStories({ '/': join(root, 'dist') }, '/', { click: true });
  });

  await t.test('preview', async () => {
    const server = await preview({ ...base, preview: { host, port: 0 } });
    try {
      assertStory(await storyOf(server.resolvedUrls.local[0], { click: true }));
    } finally {
      await server.close();
    }
  });
});

test('webpack 5 needs no configuration, in any folder of a host', async () => {
  const folder = await copyExample('vite');
  const path = join(project.folder, 'webpack-output');
  const options = { context: folder, mode: 'production', entry: './src/main.js', output: { path } };
  const stats = await promisify(webpack)(options);
  assert.deepEqual(stats.toJson({ all: false, errors: true, warnings: true }).errors, []);
  const html = await readFile(join(folder, 'index.html'), 'utf8');
  const script = '<script type="module" src="/src/main.js">';
  assert.ok(html.includes(script));
  await writeFile(join(path, 'index.html'), html.replace(script, '<script src="./main.js">'));
  await assertStories({ '/some/where/': path }, '/some/where/', { click: true });
});

test('esbuild needs no configuration, and nothing beside the bundle', async () => {
  const folder = await copyExample('esbuild');
  const { scripts } = JSON.parse(await readFile(join(folder, 'package.json'), 'utf8'));
  const path = `${join(repository, 'node_modules/.bin')}:${process.env.PATH}`;
  await run('sh', ['-c', scripts.build], { cwd: folder, env: { ...process.env, PATH: path } });
  const www = join(folder, 'www');
  assert.deepEqual((await readdir(www)).sort(), ['index.html', 'main.js']);
  const policy =
    "default-src 'self'; script-src 'self' 'wasm-unsafe-eval'; worker-src 'self' blob:";
  for (const headers of [{}, isolation]) {
    const options = {
      headers: { 'Content-Security-Policy': policy, ...headers },
      isolated: headers === isolation,
      wasmFiles: 0,
    };
    assertStory(await storyServed({ '/deep/er/': www }, '/deep/er/', options));
  }
});

test('a plain page needs no bundler, in any folder of a host', async () => {
  const page = await copyExample('plain-page');
  const folders = { '/pages/kvasm/': join(project.installed, 'dist'), '/pages/': page };
  await assertStories(folders, '/pages/');
});

test('a service worker isolates a page whose host does not', async () => {
  const page = await copyExample('isolated-page');
  const folders = { '/pages/kvasm/': join(project.installed, 'dist'), '/pages/': page };
  assertStory(await storyServed(folders, '/pages/', { isolated: true }));
});
