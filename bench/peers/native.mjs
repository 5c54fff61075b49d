// PyTorch outside the browser, for comparison.

import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { startCpuMeter } from '../lib/cpu-meter.mjs';
import { treeCpuSeconds } from '../lib/process-tree.mjs';

// Debian's own: another python3 in PATH does not see its packages.
const PYTHON = '/usr/bin/python3';
const SCRIPT = fileURLToPath(new URL('torch_loop.py', import.meta.url));
const run = promisify(execFile);

/** Why PyTorch cannot be measured here, or undefined. */
export async function torchIsMissing() {
  try {
    await run(PYTHON, ['-c', 'import torch, numpy']);
    return undefined;
  } catch {
    return `${PYTHON} has no torch and numpy`;
  }
}

/** Tokens per second after the first, with the ids, the layout of the weights and PyTorch's version. */
export async function measureTorch(checkpoint, { ids, tokens, threads }) {
  const stop = startCpuMeter(() => treeCpuSeconds(process.pid));
  const { stdout } = await run(PYTHON, [SCRIPT, checkpoint, threads, tokens, ...ids].map(String), {
    env: { ...process.env, OPENBLAS_NUM_THREADS: threads, OMP_NUM_THREADS: threads },
  });
  const { times, ids: drawn, layout, version } = JSON.parse(stdout);
  return {
    decode: (times.length - 1) / (times.at(-1) - times[0]),
    ids: drawn,
    layout,
    version,
    foreignCores: stop().foreignCores,
  };
}
