import { join } from 'node:path';
import { openPage } from './chromium.mjs';
import { repository } from './models.mjs';
import { serve } from './static-server.mjs';

const html = '<!doctype html><title>bare</title><script type="module" src="./main.js"></script>';
const script = "import * as kvasm from './dist/index.js'; globalThis.kvasm = kvasm;";

/** The files of a page that has the package in `kvasm`; the package itself is at `/dist/`. */
export const barePageScript = { '/index.html': html, '/main.js': script };

/**
 * A page that uses the built package without a bundler, from a host that knows no type for WebAssembly.
 *
 * @param {import('playwright-core').Browser} browser
 * @param {string} modelFolder served as `./model/`
 * @param {Record<string, string>} [modelTexts] files of the model that are not in its folder
 * @param {Record<string, string>} [headers] sent with every answer
 */
export async function openBarePage(browser, modelFolder, modelTexts = {}, headers = {}) {
  const texts = { ...barePageScript };
  for (const [name, text] of Object.entries(modelTexts)) texts[`/model/${name}`] = text;
  const server = await serve({
    folders: { '/dist/': join(repository, 'dist'), '/model/': modelFolder },
    texts,
    headers,
    types: { '.wasm': 'application/octet-stream' },
  });
  try {
    const { page, failures, close } = await openPage(browser);
    await page.goto(server.url);
    await page.waitForFunction(() => globalThis.kvasm !== undefined);
    return {
      page,
      failures,
      async close() {
        await close();
        await server.close();
      },
    };
  } catch (error) {
    // A server that goes on would keep the test's process from ending.
    await server.close();
    throw error;
  }
}
