// One headless Chromium for the whole run; each visit is a page, with a process, of its own.

import { fileURLToPath } from 'node:url';
import { launchChromium } from '../../tests/browser/support/chromium.mjs';
import { isolation, serve } from '../../tests/browser/support/static-server.mjs';
import { startCpuMeter } from '../lib/cpu-meter.mjs';
import { peakRendererBytes, treeCpuSeconds } from '../lib/process-tree.mjs';
import { packagePath } from './packages.mjs';

const VISIT_MS = 900_000;
const PAGES = fileURLToPath(new URL('page/', import.meta.url));
const DIST = fileURLToPath(new URL('../../dist/', import.meta.url));

/** How to drive each engine: the page's script. */
const scripts = {
  kvasm: '/bench/kvasm.js',
  wllama: '/bench/wllama.js',
  'onnxruntime-web': '/bench/onnxruntime-web.js',
  'read loop': '/bench/read-loop.js',
};

/** What `work` gives, with how long it takes and what others use meanwhile. */
async function metered(work) {
  const stop = startCpuMeter(() => treeCpuSeconds(process.pid));
  const result = await work();
  const { seconds: wall, foreignCores } = stop();
  return { ...result, wall, foreignCores };
}

function withTimeout(promise, milliseconds) {
  let timer;
  const timeout = new Promise((_, reject) => {
    const seconds = milliseconds / 1000;
    timer = setTimeout(() => reject(new Error(`no answer in ${seconds} s`)), milliseconds);
  });
  return Promise.race([promise, timeout]).finally(() => clearTimeout(timer));
}

/**
 * Opens the browser, and a server for the engines and the models.
 * @param {string} models their folder, served as `/models/`
 */
export async function openBrowser(models) {
  let onFile = () => {};
  const server = await serve({
    folders: {
      '/kvasm/': DIST,
      '/wllama/': packagePath('@wllama/wllama/esm'),
      '/ort/': packagePath('onnxruntime-web/dist'),
      '/bench/': PAGES,
      '/models/': models,
    },
    texts: { '/index.html': '<!doctype html><title>bench</title>' },
    types: { '.mjs': 'text/javascript' },
    headers: {
      ...isolation,
      // In place of the strict one: wllama makes its worker from a Blob.
      'Content-Security-Policy': "default-src 'self' blob: 'unsafe-eval'",
      'Cache-Control': 'no-store',
    },
    onFile: file => onFile(file),
  });
  const browser = await launchChromium();

  /**
   * Loads an engine in a new page, lets `work` use it, and closes the page.
   * @param {string} engine
   * @param {object} options for the `load` of the engine's script
   * @param {(call: (method: string, argument: object) => Promise<object>, load: object) => Promise<object>} work `call`
   *   calls a method of what was loaded, and measures what others do meanwhile
   * @returns {Promise<object>} what `work` gives, with `load` { seconds, facts, foreignCores }, `peakBytes` and `files`,
   *   the paths of what the page has fetched
   */
  async function visit(engine, options, work) {
    const files = new Set();
    onFile = file => files.add(file);
    const context = await browser.newContext();
    const errors = [];
    try {
      const page = await context.newPage();
      page.on('pageerror', error => errors.push(error.message));
      page.on('crash', () => errors.push('the page crashed'));
      await page.goto(server.url);
      const run = async () => {
        const load = await metered(() => page.evaluate(loadInPage, [scripts[engine], options]));
        const call = (method, argument) =>
          metered(() => page.evaluate(callInPage, [method, argument]));
        const result = await work(call, load);
        return { ...result, load, peakBytes: peakRendererBytes(process.pid), files: [...files] };
      };
      return await withTimeout(run(), VISIT_MS);
    } catch (error) {
      throw new Error([error.message, ...errors].join('; '), { cause: error });
    } finally {
      await context.close();
    }
  }

  return {
    version: browser.version(),
    visit,
    async close() {
      await browser.close();
      await server.close();
    },
  };
}

async function loadInPage([script, options]) {
  const started = performance.now();
  const { load } = await import(script);
  globalThis.bench = await load(options);
  return { seconds: (performance.now() - started) / 1000, facts: globalThis.bench.facts };
}

async function callInPage([method, argument]) {
  return await globalThis.bench[method](argument);
}
