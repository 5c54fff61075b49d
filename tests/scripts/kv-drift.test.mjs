// The drift of quantised keys and values: the figures by hand, and the script from end to end.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { LogitDrift } from '../../scripts/lib/logit-drift.mjs';

test('the figures are those of the definitions', () => {
  const drift = new LogitDrift();
  // Probabilities 1/2, 1/4, 1/4 and 1/4, 1/2, 1/4, in logits that are not normalised.
  const p = Float32Array.of(Math.log(2) + 700, 700, 700);
  const q = Float32Array.of(0, Math.log(2), 0);
  drift.add(p, p, 0);
  assert.deepEqual(drift.summary(), {
    positions: 1,
    maxDifference: 0,
    divergenceBits: 0,
    argmaxAgreement: 1,
    extraBits: 0,
    extraBitsError: 0,
  });
  drift.add(p, q, 0);
  // Near 700 a float32 is off by up to 3e-5.
  const { divergenceBits, argmaxAgreement, extraBits, maxDifference } = drift.summary();
  // Half of KL = 1/2 log2(2) + 1/4 log2(1/2) and of the one bit more that id 0 costs.
  assert.ok(Math.abs(divergenceBits - 0.25 / 2) < 1e-4);
  assert.ok(Math.abs(extraBits - 1 / 2) < 1e-4);
  assert.equal(argmaxAgreement, 1 / 2);
  assert.ok(Math.abs(maxDifference - (700 + Math.LN2)) < 1e-3);
});

test('the script finds no drift for f32, a little for f16, more for q8', async () => {
  const script = fileURLToPath(new URL('../../scripts/kv-drift.mjs', import.meta.url));
  const tiny = await promisify(execFile)(process.execPath, [script, '--tokens', '100']);
  const rows = tiny.stdout
    .split('\n')
    .filter(line => /^\| (f32|f16|q8) /.test(line))
    .map(line => line.split('|').map(cell => cell.trim()));
  assert.deepEqual(
    rows.map(row => row[1]),
    ['f32', 'f16', 'q8'],
  );
  const [f32, f16, q8] = rows.map(row => ({ logit: Number(row[3]), divergence: Number(row[4]) }));
  assert.deepEqual(f32, { logit: 0, divergence: 0 });
  assert.ok(f16.logit > 0 && f16.logit < q8.logit);
  assert.ok(f16.divergence < q8.divergence && q8.divergence < 0.01);
});
