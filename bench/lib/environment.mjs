// What a measurement was made on.

import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { cpus } from 'node:os';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('../../', import.meta.url));
const ENGINE_SOURCES = ['src', 'bindings/embind.cc', 'bindings/CMakeLists.txt', 'CMakeLists.txt'];

function git(...args) {
  try {
    return execFileSync('git', args, { cwd: root, encoding: 'utf8' }).trim();
  } catch {
    return undefined;
  }
}

/** { date, commit, build, cpu, node }, all text. `build` tells wasm builds apart that share a commit. */
export function environment(wasmPath) {
  const wasm = readFileSync(new URL(wasmPath, new URL('../../', import.meta.url)));
  const changed = git('status', '--porcelain', '--', ...ENGINE_SOURCES);
  const commit = git('rev-parse', '--short', 'HEAD') ?? 'unknown';
  const processors = cpus();
  return {
    date: `${new Date().toISOString().slice(0, 16).replace('T', ' ')} UTC`,
    commit: changed ? `${commit} with uncommitted changes of the engine` : commit,
    build: createHash('sha256').update(wasm).digest('hex').slice(0, 12),
    cpu: `${processors[0].model.trim()}, ${processors.length} processors`,
    node: process.version,
  };
}
