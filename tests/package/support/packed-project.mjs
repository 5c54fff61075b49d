// A project as users have it: outside the repository, with the package as `npm pack` makes it.

import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const run = promisify(execFile);
export const repository = fileURLToPath(new URL('../../../', import.meta.url));

/**
 * Makes an empty project with the package installed.
 * @returns {Promise<{ folder: string, installed: string, remove(): Promise<void> }>}
 */
export async function makeProject() {
  const folder = await mkdtemp(join(tmpdir(), 'kvasm-package-'));
  const { stdout } = await run(
    'npm',
    ['pack', '--json', '--ignore-scripts', '--pack-destination', folder],
    { cwd: repository },
  );
  const [{ filename }] = Object.values(JSON.parse(stdout));
  const installed = join(folder, 'node_modules/kvasm');
  await mkdir(installed, { recursive: true });
  await run('tar', ['-xzf', join(folder, filename), '-C', installed, '--strip-components=1']);
  await rm(join(folder, filename));
  await writeFile(join(folder, 'package.json'), '{ "private": true, "type": "module" }');
  return { folder, installed, remove: () => rm(folder, { recursive: true, force: true }) };
}
