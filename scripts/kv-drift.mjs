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
import { bitsOf, LogitDrift } from './lib/logit-drift.mjs';
import {
  check,
  instantiate,
  kvDtypes,
  loadEngine,
  nextToken,
  SEQUENCE_DEFAULTS,
  startSequence,
} from './lib/wasm-engine.mjs';

const USAGE = `Usage: kv-drift.mjs [--model DIR] [--text FILE] [--tokens N]

  --model DIR   a GPT-2 checkpoint (default: models/fairy-tale if it is there, else a random model made aside)
  --text FILE   the text to predict (default: one that the model draws itself, in f32, from a fixed seed)
  --tokens N    tokens of it, at the most (default: 512). All f32 logits are kept: 4 bytes * vocabulary * N
`;

const BUNDLED = fileURLToPath(new URL('../models/fairy-tale', import.meta.url));

async function encodeFile(dir, path) {
  const { Tokenizer } = await import('../dist/tokenizer/tokenizer.js').catch(error => {
    throw new Error('--text needs the package; run scripts/build-ts', { cause: error });
  });
  const read = name => readFile(join(dir, name), 'utf8');
  const tokenizer = existsSync(join(dir, 'tokenizer.json'))
    ? Tokenizer.fromTokenizerJson(await read('tokenizer.json'))
    : Tokenizer.fromVocabAndMerges(await read('vocab.json'), await read('merges.txt'));
  return tokenizer.encode(await readFile(path, 'utf8'));
}

/** Up to `count` ids that the model draws after the end-of-text id. */
function drawIds(engine, count) {
  const { eosTokenId } = engine.config();
  const first = Math.max(eosTokenId, 0);
  const sequence = startSequence(engine, [first], { temperature: 1 });
  const ids = [first];
  while (ids.length < count && sequence.remaining() > 0) ids.push(nextToken(engine));
  sequence.delete();
  return ids;
}

/** Calls back with (logits, next id) after each id but the last: what is drawn is dropped, and replaced by the text's. */
function forceIds(engine, ids, onLogits) {
  const sequence = startSequence(engine, [ids[0]]);
  for (let i = 1; i < ids.length; i++) {
    nextToken(engine);
    onLogits(sequence.logits(), ids[i]);
    if (i === ids.length - 1) break;
    check(sequence.truncate(i));
    check(sequence.append(Int32Array.of(ids[i]), SEQUENCE_DEFAULTS));
  }
  sequence.delete();
}

/** Cuts ids into texts that fit into the context. A single id at the end predicts nothing. */
function pieces(ids, contextLength) {
  const all = [];
  for (let at = 0; at + 1 < ids.length; at += contextLength) {
    all.push(ids.slice(at, at + contextLength));
  }
  return all.filter(piece => piece.length > 1);
}

async function measure(dir, textPath, count) {
  const module = await instantiate();
  let ids = textPath === undefined ? undefined : await encodeFile(dir, textPath);
  const reference = [];
  let referenceBits = 0;
  const rows = [];
  for (const [name, kvDtype] of Object.entries(kvDtypes)) {
    const engine = await loadEngine(module, dir, { kvDtype });
    ids = (ids ?? drawIds(engine, count)).slice(0, count);
    const texts = pieces(ids, engine.config().nPositions);
    if (texts.length === 0) throw new Error('the text has fewer than two tokens');
    const drift = new LogitDrift();
    let at = 0;
    for (const text of texts) {
      forceIds(engine, text, (logits, next) => {
        if (kvDtype === kvDtypes.f32) {
          reference.push(Float32Array.from(logits));
          referenceBits += bitsOf(logits, next);
        }
        drift.add(reference[at++], logits, next);
      });
    }
    rows.push({ name, bytes: engine.memory().kvPerToken, ...drift.summary() });
    engine.delete();
  }
  return { rows, bitsPerToken: referenceBits / reference.length };
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
    const count = Number(values.tokens);
    if (!Number.isSafeInteger(count) || count < 2) {
      throw new Error(`--tokens: '${values.tokens}' is not a whole number above 1`);
    }
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
