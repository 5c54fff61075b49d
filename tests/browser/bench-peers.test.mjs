// The bench against the peers, from end to end, with a tiny model and without the peers.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { repository } from './support/models.mjs';

test('the bench measures the built package in a browser, and reports all of it', async () => {
  const { stdout } = await promisify(execFile)(process.execPath, [
    join(repository, 'bench/peers.mjs'),
    ...['--shape', 'tiny', '--only', 'kvasm,read-loop,strategies,f32'],
    ...['--threads', '1', '--reps', '1', '--tokens', '12', '--prefill', '100'],
  ]);
  assert.doesNotMatch(stdout, /Not measured/);
  // Fast or slow, but neither nothing nor unknown.
  const rate = '(?=[\\d.]*[1-9])[\\d.]+';
  assert.match(stdout, new RegExp(`\\| kvasm f32, 1 +\\| +${rate} \\| +${rate} \\| +${rate} \\|`));
  assert.match(stdout, new RegExp(`\\| f32, 1 +\\| +[\\d.]+ \\| +${rate} \\| +${rate} \\|`));
  for (const cache of ['block', 'concat', 'none']) {
    assert.match(stdout, new RegExp(`\\| ${cache} +\\| +[\\d.]+ \\| +${rate} \\|`));
  }
  assert.match(stdout, /\| kvasm, (relaxed-)?simd.*\| +[\d.]+ \|/);
  assert.match(stdout, /\| gzip size of one build and its script .*\| yes \|/);
  assert.match(stdout, /\| decode q8, against the best peer .*\| +not measured \| +\|/);
});
