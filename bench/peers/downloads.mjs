// What a page has to fetch before it can load a model.

import { readFileSync } from 'node:fs';
import { basename } from 'node:path';
import { gzipSync } from 'node:zlib';
import { transformSync } from 'esbuild';

const SCRIPT = /\.m?js$/;
const WASM = /\.wasm$/;

const gzipBytes = bytes => gzipSync(bytes, { level: 9 }).length;

/** Without spaces and long names, as a bundler leaves it. Some publish it so already. */
const minified = bytes => transformSync(bytes.toString(), { minify: true, format: 'esm' }).code;

/**
 * Of the scripts and WebAssembly among `files`, in bytes: as they are, as a server sends them, and as it sends them when
 * the scripts are minified.
 */
export function downloadSize(files) {
  const sizes = files
    .filter(file => SCRIPT.test(file) || WASM.test(file))
    .map(file => {
      const bytes = readFileSync(file);
      const gzip = gzipBytes(bytes);
      const small = SCRIPT.test(file) ? Math.min(gzip, gzipBytes(minified(bytes))) : gzip;
      return { bytes: bytes.length, gzip, small };
    });
  const sum = key => sizes.reduce((total, size) => total + size[key], 0);
  return { files: sizes.length, bytes: sum('bytes'), gzip: sum('gzip'), small: sum('small') };
}

/** The name of the one of our builds that a page has fetched, or undefined. */
export function buildName(files) {
  const names = files.map(file => basename(file).match(/^kvasm-(.+)\.wasm$/)?.[1]);
  return names.find(name => name !== undefined);
}

/** What belongs to that build alone: the WebAssembly, and the script that Emscripten made for it. */
export const buildFiles = files =>
  files.filter(file => basename(file).startsWith(`kvasm-${buildName(files)}.`));
