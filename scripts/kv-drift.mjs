#!/usr/bin/env node

// Measures what keeping keys and values as f16 or q8 changes, against f32: the same ids go through a
// WebAssembly engine for each, and the predictions are compared at every position.

import { existsSync } from 'node:fs';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { makeCheckpoint } from './fixtures/make-checkpoint.mjs';
import { compareEngines, drawIds, parseTokens, pieces, readTokenizer } from './lib/text-drift.mjs';
import { instantiate, kvDtypes, loadEngine } from './lib/wasm-engine.mjs';

const USAGE = `Usage: kv-drift.mjs [--model DIR] [--text FILE] [--tokens N]

  --model DIR   a GPT-2 checkpoint (default: models/fairy-tale if it is there, else a random model made aside)
  --text FILE   the text to predict (default: one that the model draws itself, in f32, from a fixed seed)
  --tokens N    tokens of it, at the most (default: 512)
`;

const BUNDLED = fileURLToPath(new URL('../models/fairy-tale', import.meta.url));

async function measure(dir, textPath, count) {
  const module = await instantiate();
  const engines = [];
  for (const kvDtype of Object.values(kvDtypes)) {
    engines.push(await loadEngine(module, dir, { kvDtype }));
  }
  const ids =
    textPath === undefined
      ? drawIds(engines[0], count)
      : (await readTokenizer(dir)).encode(await readFile(textPath, 'utf8'));
  const texts = pieces(ids.slice(0, count), engines[0].config().nPositions);
  if (texts.length === 0) throw new Error('the text has fewer than two tokens');
  const { bitsPerToken, drifts } = compareEngines(engines, texts);
  const rows = Object.keys(kvDtypes).map((name, i) => ({
    name,
    bytes: engines[i].memory().kvPerToken,
    ...drifts[i],
  }));
  for (const engine of engines) engine.delete();
  return { rows, bitsPerToken };
}

const small = number => (number === 0 ? '0' : number.toExponential(2));

function table({ rows, bitsPerToken }) {
  const lines = rows.map(row =>
    [
      row.name,
      `${row.bytes.toLocaleString('en')} (${((100 * row.bytes) / rows[0].bytes).toFixed(1)} %)`,
      small(row.maxDifference),
      small(row.divergenceBits),
      `${(100 * row.argmaxAgreement).toFixed(2)} %`,
      (bitsPerToken + row.extraBits).toFixed(4),
      `${small(row.extraBits)} ± ${small(row.extraBitsError)}`,
    ].join(' | '),
  );
  return [
    '| keys and values | bytes per token | max. logit difference | mean KL from f32, bits | same argmax | bits per token | difference, ± standard error |',
    '| --- | --: | --: | --: | --: | --: | --: |',
    ...lines.map(line => `| ${line} |`),
  ].join('\n');
}

async function main() {
  let scratch;
  try {
    const { values } = parseArgs({
      options: {
        model: { type: 'string' },
        text: { type: 'string' },
        tokens: { type: 'string', default: '512' },
        help: { type: 'boolean' },
      },
    });
    if (values.help) {
      process.stdout.write(USAGE);
      return;
    }
    const count = parseTokens(values.tokens);
    let dir = values.model;
    let title = dir;
    if (dir === undefined && existsSync(join(BUNDLED, 'model.safetensors'))) {
      [dir, title] = [BUNDLED, 'models/fairy-tale'];
    } else if (dir === undefined) {
      dir = scratch = await mkdtemp(join(tmpdir(), 'kvasm-drift-'));
      title = 'a random model (fixtures: tiny)';
      await makeCheckpoint(dir);
    }
    const result = await measure(dir, values.text, count);
    const text = values.text ?? 'ids drawn by the model itself in f32';
    console.log(`${title}, ${result.rows[0].positions} predictions over ${text}\n`);
    console.log(table(result));
  } catch (error) {
    console.error(`kv-drift: ${error.message}`);
    process.exitCode = 1;
  } finally {
    if (scratch !== undefined) await rm(scratch, { recursive: true });
  }
}

await main();
