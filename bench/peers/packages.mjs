// The peers as npm has them, in a folder of their own: the package does not depend on what it is compared with.

import { execFileSync } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';

const FOLDER = new URL('../../build/peers/', import.meta.url);
const PINNED = {
  '@wllama/wllama': '3.13.0',
  'onnx-proto': '8.0.1',
  'onnxruntime-web': '1.30.0',
};

/** Where a package comes from and which version, for the record. */
export const peerVersion = name => `${name} ${PINNED[name]}`;

/** The file or folder of an installed package. */
export const packagePath = name => fileURLToPath(new URL(`node_modules/${name}`, FOLDER));

function installed(name) {
  try {
    return JSON.parse(readFileSync(packagePath(`${name}/package.json`), 'utf8')).version;
  } catch {
    return undefined;
  }
}

/** Installs what is missing or of another version, without running any package's scripts. */
export function installPeers() {
  if (Object.entries(PINNED).some(([name, version]) => installed(name) !== version)) {
    console.error('peers: installing them into build/peers');
    mkdirSync(FOLDER, { recursive: true });
    const manifest = { private: true, dependencies: PINNED };
    writeFileSync(new URL('package.json', FOLDER), JSON.stringify(manifest));
    const options = ['--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error'];
    const command = ['install', '--prefix', fileURLToPath(FOLDER), ...options];
    execFileSync('npm', command, { stdio: ['ignore', 'ignore', 'inherit'] });
  }
}

/** A CommonJS module of an installed package. */
export const requirePeer = name => createRequire(new URL('package.json', FOLDER))(name);
