// Writes dist/embedded-worker.js: the Worker's script in one piece with the build `simd` of the WebAssembly, for bundles whose
// bundler emits no files. Does nothing where dist/ has no WebAssembly or no compiled TypeScript yet.

import { existsSync } from 'node:fs';
import { readFile, writeFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';
import { build } from 'esbuild';

const dist = fileURLToPath(new URL('../../dist', import.meta.url));
const wasm = `${dist}/wasm/kvasm-simd.wasm`;
const target = `${dist}/embedded-worker.js`;

if (existsSync(wasm) && existsSync(target)) {
  const compressed = gzipSync(await readFile(wasm), { level: 9 }).toString('base64');
  const { outputFiles } = await build({
    stdin: {
      contents: `
        import factory from './wasm/kvasm-simd.js';
        import { serveEmbedded } from './worker/embedded.js';
        serveEmbedded(factory, '${compressed}');`,
      resolveDir: dist,
    },
    bundle: true,
    minify: true,
    format: 'esm',
    target: 'es2022',
    charset: 'utf8',
    write: false,
  });
  await writeFile(target, `export const script = ${JSON.stringify(outputFiles[0].text)};\n`);
}
