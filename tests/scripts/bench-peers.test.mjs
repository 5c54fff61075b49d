// The bench against the peers: what it runs, in which order, and what it makes of the samples.

import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { buildFiles, buildName, downloadSize } from '../../bench/peers/downloads.mjs';
import { ENTRANTS, selection } from '../../bench/peers/entrants.mjs';
import { promptMaker } from '../../bench/peers/prompts.mjs';
import { PAGE, readLoopModule, STRIDE } from '../../bench/peers/read-loop.mjs';
import { agreement, chart, markdownReport } from '../../bench/peers/report.mjs';
import { keyOf, Results, ratioOf } from '../../bench/peers/results.mjs';
import { runRounds } from '../../bench/peers/rounds.mjs';
import { targetLines } from '../../bench/peers/targets.mjs';
import { makeVocabulary } from '../../scripts/fixtures/make-checkpoint.mjs';

test('each round runs everything once, in order, and what fails not again', async () => {
  const log = [];
  const item = key => ({
    key,
    run: async round => {
      log.push(`${key}${round}`);
      if (key === 'b' && round === 1) throw new Error('out of luck');
      return { value: key + round };
    },
  });
  const { samples, failures } = await runRounds(['a', 'b', 'c'].map(item), 3);
  assert.deepEqual(log, ['a0', 'b0', 'c0', 'a1', 'b1', 'c1', 'a2', 'c2']);
  assert.deepEqual([...samples.keys()], ['a', 'c']);
  assert.deepEqual(samples.get('c'), [
    { round: 0, value: 'c0' },
    { round: 1, value: 'c1' },
    { round: 2, value: 'c2' },
  ]);
  assert.deepEqual([...failures], [['b', 'out of luck']]);
});

test('what is not due in a round is left out of it, and compared in the others', async () => {
  const rates = { quick: [8, 40, 80], slow: [4, 0, 20] };
  const item = (name, isDue) => ({
    ...{ key: keyOf(name, 'f32', 1), name, precision: 'f32', threads: 1 },
    run: async round => ({ decode: rates[name][round] }),
    isDue,
  });
  const items = [item('quick'), item('slow', round => round !== 1)];
  const { samples } = await runRounds(items, 3);
  const { entries } = new Results(items, samples);
  assert.deepEqual(
    entries.map(entry => entry.samples.length),
    [3, 2],
  );
  assert.deepEqual(ratioOf(entries[0], entries[1], 'decode'), { median: 3, min: 2, max: 4 });
  assert.deepEqual(ratioOf(entries[1], entries[0], 'decode'), {
    median: 0.375,
    min: 0.25,
    max: 0.5,
  });
});

test('--only takes engines, precisions, or both', () => {
  const chosen = words => {
    const isSelected = selection(words);
    return ENTRANTS.filter(e => isSelected(e.engine, e.precision)).map(
      e => `${e.engine} ${e.precision}`,
    );
  };
  assert.equal(chosen([]).length, ENTRANTS.length);
  assert.deepEqual(chosen(['wllama']), ['wllama f32', 'wllama q8', 'wllama q4']);
  assert.deepEqual(chosen(['wllama', 'kvasm', 'q4']), ['kvasm q4', 'wllama q4']);
  assert.equal(chosen(['q8']).length, 3);
  assert.deepEqual(chosen(['torch']), []);
  assert.ok(selection(['torch'])('torch', 'f32'));
  assert.throws(() => selection(['wlama']), /'wlama' is not one of kvasm, wllama/);
});

test('the text of a prompt encodes to its ids', async t => {
  const { Tokenizer } = await import('../../dist/tokenizer/tokenizer.js').catch(() => ({}));
  if (Tokenizer === undefined) {
    t.skip('dist/ has no tokenizer: run scripts/build-ts');
    return;
  }
  for (const vocabSize of [512, 50257]) {
    const { tokens, merges } = makeVocabulary(vocabSize);
    const tokenizer = Tokenizer.fromVocabAndMerges(
      JSON.stringify(Object.fromEntries(tokens.map((token, id) => [token, id]))),
      `#version: 0.2\n${merges.map(pair => pair.join(' ')).join('\n')}\n`,
    );
    const { prompt, decode } = promptMaker(vocabSize);
    for (const [count, seed] of [
      [4, 222],
      [512, 3333],
    ]) {
      const { ids, prompt: text } = prompt(count, seed);
      assert.equal(ids.length, count);
      assert.deepEqual([...tokenizer.encode(text)], ids);
      assert.equal(decode(ids), text);
    }
    assert.notEqual(prompt(4, 222).ids[0], prompt(4, 3333).ids[0]);
  }
});

test('the read loop reads every word of its range, and no other', async () => {
  const pages = 3;
  const memory = new WebAssembly.Memory({ initial: pages, maximum: pages, shared: true });
  const { instance } = await WebAssembly.instantiate(readLoopModule(pages), { env: { memory } });
  const words = new Uint32Array(memory.buffer);
  for (let i = 0; i < words.length; i++) words[i] = Math.imul(i + 1, 2654435761);
  const sum = (from, to) => words.subarray(from / 4, to / 4).reduce((a, b) => (a + b) | 0, 0);
  for (const [from, to] of [
    [0, STRIDE],
    [STRIDE, 5 * STRIDE],
    [PAGE - STRIDE, PAGE + STRIDE],
    [0, pages * PAGE],
  ]) {
    assert.equal(instance.exports.read(from, to), sum(from, to));
  }
  assert.throws(() => instance.exports.read(0, pages * PAGE + STRIDE), WebAssembly.RuntimeError);
});

/** Results in which every rate of an engine is `speed` times its number of threads. */
function madeUpResults(speeds, more = []) {
  const items = [];
  const samples = new Map();
  const add = (name, precision, threads, list) => {
    const key = keyOf(name, precision, threads);
    items.push({ key, name, precision, threads, stored: precision });
    samples.set(key, list);
  };
  for (const [name, precision, speed] of speeds) {
    for (const threads of [1, 2]) {
      // The second round is twice as slow for all.
      const sample = (round, slowness) => ({
        round,
        decode: (speed * threads) / slowness,
        prefill: (10 * speed * threads) / slowness,
        bytesPerSecond: (1e9 * threads) / slowness,
        firstToken: 5,
        loadSeconds: 1,
        peakBytes: 5e8,
        foreignCores: 0,
        text: 'la la la',
        files: [],
        facts: { variant: 'simd', settings: `settings of ${name}` },
      });
      add(name, precision, threads, [sample(0, 1), sample(1, 2)]);
    }
  }
  for (const args of more) add(...args);
  return new Results(items, samples);
}

const SETTINGS = { threads: [1, 2], tokens: 200, prefill: 512, reps: 2, shape: '124M' };
const verdicts = results =>
  Object.fromEntries(targetLines(results, SETTINGS).map(({ what, met }) => [what, met]));

test('a target is met at its ratio, and not below it', () => {
  for (const [speed, met] of [
    [69.9, false],
    [70, true],
  ]) {
    const results = madeUpResults([
      ['kvasm', 'q8', speed],
      ['wllama', 'q8', 10],
      ['onnxruntime-web', 'q8', 8],
    ]);
    assert.equal(verdicts(results)['decode q8, against the best peer'], met);
  }
});

test('the best peer is the fastest, whichever it is', () => {
  const results = madeUpResults([
    ['kvasm', 'f32', 100],
    ['wllama', 'f32', 30],
    ['onnxruntime-web', 'f32', 60],
  ]);
  const [line] = targetLines(results, SETTINGS).filter(({ what }) =>
    /^decode f32.*peer/.test(what),
  );
  assert.equal(line.met, false);
  assert.match(line.measured, /^1\.67x: 150 with 2 threads, onnxruntime-web 90\.0 with 2 threads/);
});

test('memory, PyTorch and the textbook have targets of their own', () => {
  const only = sample => [{ round: 0, foreignCores: 0, ...sample }];
  const rate = bytesPerSecond => only({ bytesPerSecond, bytes: 1 });
  const seconds = { block: 1, concat: 1.02, none: 6.2 };
  const results = madeUpResults(
    [['kvasm', 'f32', 50]],
    [
      ['read-loop', 'f32', 1, rate(1.2e9)],
      ['read-loop', 'f32', 2, rate(4e9)],
      ['torch', 'f32', 2, only({ decode: 60 })],
      ['strategies', 'f32', 2, only({ seconds })],
    ],
  );
  const met = verdicts(results);
  assert.equal(met['bytes of weights read, decode f32, 1 thread, against the read loop'], true);
  assert.equal(met['bytes of weights read, decode f32, 2 threads, against the read loop'], false);
  assert.equal(met['bytes of weights read, decode q8, 1 thread, against the read loop'], undefined);
  assert.equal(met["decode f32, 2 threads, against PyTorch's best loop outside the browser"], true);
  assert.equal(met['block cache against none, 200 tokens, f32'], true);
  assert.equal(met['concat against block, 200 tokens, f32'], true);
});

test('ratios hold within a round, whatever the round is like', () => {
  const results = madeUpResults([
    ['kvasm', 'f32', 100],
    ['wllama', 'f32', 40],
  ]);
  const [ours, theirs] = ['kvasm', 'wllama'].map(name => results.find(name, 'f32', 2));
  assert.deepEqual(ratioOf(ours, theirs, 'decode'), { median: 2.5, min: 2.5, max: 2.5 });
});

test('the agreement of texts is the share that they begin alike with', () => {
  assert.equal(agreement('abcd', 'abcd'), 1);
  assert.equal(agreement('abxd', 'abcd'), 0.5);
  assert.equal(agreement('', 'abcd'), 0);
  assert.equal(agreement('abcdef', 'abcd'), 1);
});

test('the report and the chart have all that was measured, and why the rest was not', () => {
  const results = madeUpResults([
    ['kvasm', 'f32', 100],
    ['wllama', 'f32', 40],
    ['wllama', 'q4', 20],
  ]);
  const facts = {
    date: 'today',
    commit: 'abc',
    builds: [{ name: 'simd', hash: '123' }],
    cpu: 'a processor',
    versions: 'Chromium 1.2, wllama 3',
  };
  const failures = new Map([['kvasm q4 1', 'no such type\n    at the page']]);
  const targets = targetLines(results, SETTINGS);
  const text = markdownReport(results, { targets, failures, facts, settings: SETTINGS });
  for (const { what } of targets) assert.ok(text.includes(what), what);
  assert.match(text, /\| kvasm f32, 2 +\| +150 \(100 to 200\) \|/);
  assert.match(text, /## Weights of 4 bits/);
  assert.doesNotMatch(text, /## Weights of 8 bits/);
  assert.match(text, /settings of wllama/);
  assert.match(text, /## Not measured\n\n- kvasm q4 1: no such type\n$/);
  const svg = chart(results, { facts, settings: SETTINGS });
  assert.equal(svg.match(/wllama f32, 1</g).length, 2);
  assert.match(svg, /decode, weights of 4 bits/);
});

test('a download is its scripts and WebAssembly, and nothing else', async () => {
  const dir = await mkdtemp(join(tmpdir(), 'kvasm-downloads-'));
  try {
    const write = async (name, content) => {
      await writeFile(join(dir, name), content);
      return join(dir, name);
    };
    const script = `${'// A long remark about nothing in particular.\n'.repeat(50)}export const a = 1;\n`;
    const files = [
      await write('kvasm-simd-threads.js', script),
      await write('kvasm-simd-threads.wasm', Buffer.alloc(1000)),
      await write('index.mjs', 'export {};'),
      await write('model.gguf', Buffer.alloc(9999)),
    ];
    const { files: count, bytes, gzip, small } = downloadSize(files);
    assert.equal(count, 3);
    assert.equal(bytes, script.length + 1000 + 'export {};'.length);
    assert.ok(small < gzip && gzip < bytes);
    assert.equal(buildName(files), 'simd-threads');
    assert.deepEqual(buildFiles(files), files.slice(0, 2));
    assert.equal(buildName(files.slice(2)), undefined);
  } finally {
    await rm(dir, { recursive: true });
  }
});
