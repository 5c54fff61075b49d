// What the package makes a page download, and what its WebAssembly is made of. docs/guide/hosting.md states the limits.

import assert from 'node:assert/strict';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import { build } from 'esbuild';
import { relaxedMultiplyAdds, vectorFunctions } from './support/wasm-functions.mjs';

const dist = join(import.meta.dirname, '../../dist');
const wasm = join(dist, 'wasm');
const variants = (await readdir(wasm)).filter(name => name.endsWith('.wasm'));

function glueOf(variant) {
  return variant.replace(/\.wasm$/, '.js');
}

async function gzippedSize(...contents) {
  const sizes = contents.map(
    async content => (await promisify(gzip)(content, { level: 9 })).length,
  );
  return (await Promise.all(sizes)).reduce((sum, size) => sum + size);
}

/** A script with what it imports, but for what is loaded only when needed, as bundlers write it. */
async function bundled(entry) {
  const { outputFiles } = await build({
    entryPoints: [join(dist, entry)],
    bundle: true,
    minify: true,
    format: 'esm',
    external: [...variants.map(name => `*/wasm/${glueOf(name)}`), '*/embedded-worker.js'],
    write: false,
    logLevel: 'silent',
  });
  return outputFiles[0].contents;
}

for (const name of variants) {
  test(`${name} with its glue is at most 150 kB of gzip`, async () => {
    const glue = await readFile(join(wasm, glueOf(name)));
    const size = await gzippedSize(await readFile(join(wasm, name)), glue);
    assert.ok(size <= 150_000, `${size} bytes`);
  });

  test(`${name} computes with vectors of 128 bits (B123)`, async () => {
    const { vector, total } = vectorFunctions(await readFile(join(wasm, name)));
    assert.ok(vector >= 10, `${vector} of ${total} functions`);
  });

  if (name.includes('relaxed')) {
    test(`${name} multiplies and adds in one instruction`, async () => {
      const count = relaxedMultiplyAdds(await readFile(join(wasm, name)));
      assert.ok(count >= 100, `${count} instructions`);
    });
  }
}

for (const [entry, limit] of [
  ['index.js', 15_000],
  ['kvasm-worker.js', 26_000],
  ['embedded-worker.js', 170_000],
]) {
  test(`${entry} is at most ${limit / 1000} kB of gzip`, async () => {
    const size = await gzippedSize(await bundled(entry));
    assert.ok(size <= limit, `${size} bytes`);
  });
}
