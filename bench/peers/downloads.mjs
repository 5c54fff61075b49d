// What a page has to fetch before it can load a model.

import { readFileSync } from 'node:fs';
import { basename } from 'node:path';
import { gzipSync } from 'node:zlib';

const CODE = /\.(m?js|wasm)$/;

/** Of the scripts and WebAssembly among `files`, as they are and as a server sends them, in bytes. */
export function downloadSize(files) {
  const sizes = files
    .filter(file => CODE.test(file))
    .map(file => {
      const bytes = readFileSync(file);
      return { bytes: bytes.length, gzip: gzipSync(bytes, { level: 9 }).length };
    });
  const sum = key => sizes.reduce((total, size) => total + size[key], 0);
  return { files: sizes.length, bytes: sum('bytes'), gzip: sum('gzip') };
}

/** One of our builds: the WebAssembly and the script that Emscripten made for it. */
export const buildFiles = (files, variant) =>
  files.filter(file => basename(file).startsWith(`kvasm-${variant}.`));
