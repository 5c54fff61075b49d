#!/usr/bin/env node

// Measures what weights and keys and values of fewer bits cost: perplexity, and how far the predictions are from those of
// float32, on passages that the bundled model was not trained on, and on texts that it draws itself.

import { execFile } from 'node:child_process';
import { existsSync, realpathSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { parseArgs, promisify } from 'node:util';
import { markdownTable } from '../bench/lib/markdown.mjs';
import { compareEngines, drawIds, parseTokens, readTokenizer } from './lib/text-drift.mjs';
import { instantiate, kvDtypes, loadEngine, weightDtypes } from './lib/wasm-engine.mjs';

const USAGE = `Usage: quality.mjs [options]

  --tokens N      tokens of each text, at the most (default: 2048)
  --corpora DIR   the books that models/fairy-tale was trained on (default: ../shared/corpora)
  --variant NAME  the WebAssembly build (default: simd)
`;

const MODEL = fileURLToPath(new URL('../models/fairy-tale', import.meta.url));
const CORPORA = fileURLToPath(new URL('../../shared/corpora', import.meta.url));
const HELD_OUT = fileURLToPath(new URL('train-demo/held_out.py', import.meta.url));
const MOST_JSON = 1 << 26;
/** By how much a perplexity may exceed that of float32. */
const TARGETS = { q8: 0.005, q4: 0.05 };

/** So many of a list, evenly spread over it. */
export const spread = (list, count) =>
  Array.from({ length: Math.min(count, list.length) }, (_, i) => {
    return list[Math.floor((i * list.length) / Math.min(count, list.length))];
  });

/** The beginnings of `count` held-out passages, as ids after the end-of-text id, up to `length` in each. */
async function heldOutTexts(corpora, engine, count, length) {
  const { stdout } = await promisify(execFile)('python3', [HELD_OUT, corpora], {
    maxBuffer: MOST_JSON,
  });
  const { eosTokenId } = engine.config();
  const tokenizer = await readTokenizer(MODEL);
  return spread(JSON.parse(stdout), count).map(text =>
    [eosTokenId, ...tokenizer.encode(text)].slice(0, length),
  );
}

/** Each of the weights' types with each of the keys' and values', float32 first. */
async function loadEngines(variant) {
  const module = await instantiate(variant);
  const all = [];
  for (const [weights, dtype] of Object.entries(weightDtypes)) {
    for (const [kv, kvDtype] of Object.entries(kvDtypes)) {
      const engine = await loadEngine(module, MODEL, { dtype, kvDtype });
      all.push({ weights, kv, engine });
    }
  }
  return all;
}

const small = number => (number === 0 ? '0' : number.toExponential(2));
const percent = ratio => `${(100 * ratio).toFixed(3)} %`;

/** What a row says beside its name, from the drift of an engine. */
export function figures({ bitsPerToken, drift }) {
  const perplexity = 2 ** (bitsPerToken + drift.extraBits);
  const excess = 2 ** drift.extraBits - 1;
  // Of the ratio: the perplexity itself varies far more from text to text than the difference does.
  const error = 2 ** drift.extraBits * Math.LN2 * drift.extraBitsError;
  return { perplexity, excess, error };
}

/** In words, whether a type of weights is as good as it is meant to be; keys and values have no target. */
export function verdict(weights, kv, excess) {
  if (kv !== 'f32' || !Object.hasOwn(TARGETS, weights)) return '';
  return `${excess <= TARGETS[weights] ? 'met' : 'not met'}: at most ${100 * TARGETS[weights]} %`;
}

function table(engines, texts) {
  const list = engines.map(({ engine }) => engine);
  const { bitsPerToken, drifts } = compareEngines(list, texts);
  const rows = engines.map(({ weights, kv, engine }, i) => {
    const drift = drifts[i];
    const { perplexity, excess, error } = figures({ bitsPerToken, drift });
    return [
      `${weights}, ${kv}`,
      (engine.memory().weights / 1e6).toFixed(2),
      perplexity.toFixed(3),
      `${percent(excess)} ± ${percent(error)}`,
      verdict(weights, kv, excess),
      small(drift.divergenceBits),
      `${(100 * drift.argmaxAgreement).toFixed(2)} %`,
      small(drift.maxDifference),
    ];
  });
  const head = [
    'weights, keys and values',
    'MB of weights',
    'perplexity',
    'above f32, ± standard error',
  ];
  head.push('target', 'mean KL from f32, bits', 'same argmax', 'max. logit difference');
  return { text: markdownTable(head, rows), predictions: drifts[0].positions };
}

async function measure({ count, corpora, variant }) {
  const engines = await loadEngines(variant);
  const [{ engine: reference }] = engines;
  const length = Math.min(count, reference.config().nPositions);
  const contexts = Math.floor(count / length);
  const print = (title, texts) => {
    const { text, predictions } = table(engines, texts);
    console.log(`\n## ${title}: ${predictions} predictions\n\n${text}`);
  };
  console.log(`models/fairy-tale, the build ${variant}`);
  if (existsSync(corpora)) {
    print('Held-out passages', await heldOutTexts(corpora, reference, contexts, length));
  } else {
    console.log(`\nskipped the held-out passages: there is no ${corpora}`);
  }
  const seeds = Array.from({ length: contexts }, (_, i) => i + 1);
  print(
    'Texts that the model draws itself, in f32',
    seeds.map(seed => drawIds(reference, length, seed)),
  );
  const missing = Object.keys(TARGETS).filter(name => !Object.hasOwn(weightDtypes, name));
  if (missing.length > 0) console.log(`\nnot measured, as this build lacks them: ${missing}`);
  for (const { engine } of engines) engine.delete();
}

async function main() {
  try {
    const { values } = parseArgs({
      options: {
        tokens: { type: 'string', default: '2048' },
        corpora: { type: 'string', default: CORPORA },
        variant: { type: 'string', default: 'simd' },
        help: { type: 'boolean' },
      },
    });
    if (values.help) {
      process.stdout.write(USAGE);
      return;
    }
    const count = parseTokens(values.tokens);
    await measure({ count, ...values });
  } catch (error) {
    console.error(`quality: ${error.message}`);
    process.exitCode = 1;
  }
}

if (process.argv[1] && realpathSync(process.argv[1]) === fileURLToPath(import.meta.url)) {
  await main();
}
