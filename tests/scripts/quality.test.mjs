// What fewer bits cost: the figures by hand, and the script from end to end.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { weightDtypes } from '../../scripts/lib/wasm-engine.mjs';
import { figures, spread, verdict } from '../../scripts/quality.mjs';

test('a bit more per token is twice the perplexity', () => {
  const drift = { extraBits: 1, extraBitsError: 0.01 };
  const { perplexity, excess, error } = figures({ bitsPerToken: 5, drift });
  assert.equal(perplexity, 64);
  assert.equal(excess, 1);
  // A hundredth of a bit is 0.7 % of the ratio of 2.
  assert.ok(Math.abs(error - 2 * 0.0069) < 1e-4);
});

test('a target is met up to its bound, for weights with f32 keys and values', () => {
  assert.match(verdict('q8', 'f32', 0.005), /^met: at most 0\.5 %/);
  assert.match(verdict('q8', 'f32', 0.0051), /^not met/);
  assert.match(verdict('q4', 'f32', 0.049), /^met: at most 5 %/);
  assert.match(verdict('q4', 'f32', NaN), /^not met/);
  assert.equal(verdict('q8', 'q8', 0.1), '');
  assert.equal(verdict('f32', 'f32', 0), '');
});

test('some of a list are spread over all of it', () => {
  assert.deepEqual(spread([0, 1, 2, 3, 4, 5, 6, 7], 4), [0, 2, 4, 6]);
  assert.deepEqual(spread([0, 1, 2], 5), [0, 1, 2]);
  assert.deepEqual(spread([], 3), []);
});

test('the script skips texts that are not there, and finds no cost in float32', async () => {
  const script = fileURLToPath(new URL('../../scripts/quality.mjs', import.meta.url));
  const { stdout } = await promisify(execFile)(process.execPath, [
    ...[script, '--tokens', '40', '--corpora', '/no/such/folder'],
  ]);
  assert.match(stdout, /skipped the held-out passages: there is no \/no\/such\/folder/);
  const rows = stdout
    .split('\n')
    .map(line => line.split('|').map(cell => cell.trim()))
    .filter(cells => /^(f32|q8|q4), (f32|f16|q8)$/.test(cells[1]));
  assert.equal(rows.length, 3 * Object.keys(weightDtypes).length);
  const divergence = new Map(rows.map(cells => [cells[1], Number(cells[6])]));
  assert.equal(divergence.get('f32, f32'), 0);
  assert.ok(divergence.get('f32, f16') > 0);
  assert.ok(divergence.get('f32, f16') < divergence.get('f32, q8'));
  for (const value of divergence.values()) assert.ok(value < 0.5);
});
