// How the predictions of engines for a text differ: the same ids go through each of them.

import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { bitsOf, LogitDrift } from './logit-drift.mjs';
import { check, nextToken, SEQUENCE_DEFAULTS, startSequence } from './wasm-engine.mjs';

/** The value of an option --tokens: one id predicts nothing. */
export function parseTokens(text) {
  const count = Number(text);
  if (Number.isSafeInteger(count) && count > 1) return count;
  throw new Error(`--tokens: '${text}' is not a whole number above 1`);
}

/** The tokenizer of the model in a directory. */
export async function readTokenizer(dir) {
  const { Tokenizer } = await import('../../dist/tokenizer/tokenizer.js').catch(error => {
    throw new Error('reading a text needs the package; run scripts/build-ts', { cause: error });
  });
  const read = name => readFile(join(dir, name), 'utf8');
  return existsSync(join(dir, 'tokenizer.json'))
    ? Tokenizer.fromTokenizerJson(await read('tokenizer.json'))
    : Tokenizer.fromVocabAndMerges(await read('vocab.json'), await read('merges.txt'));
}

/** Up to `count` ids that the model draws after the end-of-text id; others for each seed. */
export function drawIds(engine, count, seed = 1) {
  const { eosTokenId } = engine.config();
  const first = Math.max(eosTokenId, 0);
  const sequence = startSequence(engine, [first], { temperature: 1, seedLow: seed });
  const ids = [first];
  while (ids.length < count && sequence.remaining() > 0) ids.push(nextToken(engine));
  sequence.delete();
  return ids;
}

/** Cuts ids into texts that fit into the context. A single id at the end predicts nothing. */
export function pieces(ids, contextLength) {
  const all = [];
  for (let at = 0; at + 1 < ids.length; at += contextLength) {
    all.push(ids.slice(at, at + contextLength));
  }
  return all.filter(piece => piece.length > 1);
}

/** The logits after each id but the last, as a view that the next step spoils: what is drawn is replaced by the text's. */
function* forcedLogits(engine, ids) {
  const sequence = startSequence(engine, [ids[0]]);
  try {
    for (let i = 1; i < ids.length; i++) {
      nextToken(engine);
      yield sequence.logits();
      if (i === ids.length - 1) return;
      check(sequence.truncate(i));
      check(sequence.append(Int32Array.of(ids[i]), SEQUENCE_DEFAULTS));
    }
  } finally {
    sequence.delete();
  }
}

/**
 * Lets all engines predict the same texts, and compares each with the first one.
 *
 * @param {object[]} engines
 * @param {number[][]} texts ids, at least two and no more than the context in each
 * @returns {{ bitsPerToken: number, drifts: object[] }} of the first engine, and by engine as LogitDrift.summary()
 */
export function compareEngines(engines, texts) {
  const drifts = engines.map(() => new LogitDrift());
  let bits = 0;
  let predictions = 0;
  for (const ids of texts) {
    const runs = engines.map(engine => forcedLogits(engine, ids));
    for (const next of ids.slice(1)) {
      let reference;
      for (const [i, run] of runs.entries()) {
        const logits = run.next().value;
        // Another engine's step may move the memory that this is a view of.
        reference ??= Float32Array.from(logits);
        drifts[i].add(reference, logits, next);
      }
      bits += bitsOf(reference, next);
      predictions++;
    }
    for (const run of runs) run.return();
  }
  return { bitsPerToken: bits / predictions, drifts: drifts.map(drift => drift.summary()) };
}
