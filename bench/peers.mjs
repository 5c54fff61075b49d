#!/usr/bin/env node

// kvasm against what else runs GPT-2 on a browser's CPU, in one Chromium, at the shape of GPT-2 124M.

import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { SHAPES } from '../scripts/fixtures/make-checkpoint.mjs';
import { environment } from './lib/environment.mjs';
import { positiveInteger, readOptions } from './lib/options.mjs';
import { openBrowser } from './peers/browser.mjs';
import { buildName } from './peers/downloads.mjs';
import { ENTRANTS, PEERS, PRECISIONS, selection } from './peers/entrants.mjs';
import { measurements } from './peers/measure.mjs';
import { makeModels } from './peers/models.mjs';
import { measureTorch, torchIsMissing } from './peers/native.mjs';
import { installPeers, peerVersion } from './peers/packages.mjs';
import { promptMaker } from './peers/prompts.mjs';
import { chart, markdownReport } from './peers/report.mjs';
import { keyOf, Results } from './peers/results.mjs';
import { runRounds } from './peers/rounds.mjs';
import { targetLines } from './peers/targets.mjs';

const USAGE = `Usage: bench/peers.mjs [options]

Installs the peers and makes the models (2.1 GB) in build/peers at first. Prints its results, and writes those of a whole
run (without --only and --shape) into bench/results/peers.md and peers.svg.

  --reps N         rounds; each measures everything once (default: 3)
  --threads LIST   numbers of threads (default: 1,2)
  --only LIST      engines (kvasm, wllama, onnxruntime-web, torch, read-loop, strategies), precisions (f32, q8, q4), or both
  --tokens N       tokens to decode (default: 200)
  --prefill N      tokens of the prompt to prefill (default: 512)
  --shape NAME     124M, or tiny to try the bench itself
`;

const RESULTS = new URL('results/', import.meta.url);
const BYTES_PER_WEIGHT = { f32: 4, q8: 34 / 32, q4: 18 / 32 };

function parseCommandLine() {
  const settings = readOptions({
    reps: 3,
    threads: '1,2',
    only: undefined,
    tokens: 200,
    prefill: 512,
    shape: '124M',
  });
  if (settings === undefined) return undefined;
  const { shape, only, threads } = settings;
  if (!Object.hasOwn(SHAPES, shape)) {
    throw new Error(`--shape: '${shape}' is not one of ${Object.keys(SHAPES).join(', ')}`);
  }
  return {
    ...settings,
    threads: threads.split(',').map(count => positiveInteger('threads', count)),
    isSelected: selection(only?.split(',') ?? []),
    isWhole: only === undefined && shape === '124M',
  };
}

/** Everything to be measured in a round, in order; things to be compared are next to each other. */
function planRound(settings, { measure, weights, torch }) {
  const { threads, isSelected } = settings;
  const items = [];
  const weightBytes = new Map();
  const most = Math.max(...threads);
  const add = (name, precision, count, run, more = {}) => {
    if (!isSelected(name, precision)) return;
    // Fewer threads take twice as long, and are seldom the best.
    const isDue = round => count === most || round % 2 === 0;
    items.push({
      key: keyOf(name, precision, count),
      name,
      precision,
      threads: count,
      run,
      isDue,
      ...more,
    });
  };
  for (const precision of Object.keys(PRECISIONS)) {
    for (const count of threads) {
      for (const entrant of ENTRANTS.filter(entrant => entrant.precision === precision)) {
        const { engine, stored } = entrant;
        const run = async () => {
          const sample = await measure.engine(entrant, count);
          if (engine === 'kvasm') weightBytes.set(precision, sample.facts.weightBytesPerToken);
          return sample;
        };
        add(engine, precision, count, run, { stored });
      }
      add('read-loop', precision, count, async () => {
        const bytes = weightBytes.get(precision) ?? weights * BYTES_PER_WEIGHT[precision];
        return { bytes, ...(await measure.readLoop(bytes, count)) };
      });
      if (precision === 'f32') add('torch', precision, count, () => torch(count));
    }
  }
  add('strategies', 'f32', most, round => measure.strategies(ENTRANTS[0], most, round));
  return items;
}

function describeRun(results, peers, chromium) {
  const ours = results.entries.filter(({ name }) => name === 'kvasm');
  const names = new Set(ours.map(({ samples: [{ files }] }) => buildName(files)));
  const builds = [...names].map(name => ({ name, ...environment(`dist/wasm/kvasm-${name}.wasm`) }));
  return {
    ...(builds[0] ?? environment('dist/wasm/kvasm-simd.wasm')),
    builds: builds.map(({ name, build }) => ({ name, hash: build })),
    versions: [
      `Chromium ${chromium}`,
      `Node ${process.versions.node}`,
      ...peers.map(peer => peerVersion(PEERS[peer])),
    ].join(', '),
  };
}

async function main() {
  const settings = parseCommandLine();
  if (settings === undefined) {
    process.stdout.write(USAGE);
    return;
  }
  const entrants = ENTRANTS.filter(e => settings.isSelected(e.engine, e.precision));
  const peers = Object.keys(PEERS).filter(peer => entrants.some(({ engine }) => engine === peer));
  if (peers.length > 0) installPeers();
  const models = await makeModels(
    settings.shape,
    entrants.map(({ model }) => model),
  );
  const config = JSON.parse(await readFile(`${models}checkpoint/config.json`, 'utf8'));
  const prompts = promptMaker(config.vocab_size);
  const missing = await torchIsMissing();
  const { tokens, prefill } = settings;

  const browser = await openBrowser(models);
  try {
    const items = planRound(settings, {
      measure: measurements({ visit: browser.visit, prompts, config, tokens, prefill }),
      weights: 12 * config.n_layer * config.n_embd ** 2 + config.vocab_size * config.n_embd,
      async torch(threads) {
        if (missing !== undefined) throw new Error(missing);
        return measureTorch(`${models}checkpoint`, { ...prompts.prompt(4, 222), tokens, threads });
      },
    });
    const { samples, failures } = await runRounds(items, settings.reps, (round, key) =>
      console.error(`round ${round + 1} of ${settings.reps}: ${key}`),
    );
    const results = new Results(items, samples);
    const facts = describeRun(results, peers, browser.version);
    const targets = targetLines(results, settings);
    const text = markdownReport(results, { targets, failures, facts, settings });
    process.stdout.write(text);
    if (!settings.isWhole) return;
    await mkdir(RESULTS, { recursive: true });
    await writeFile(new URL('peers.md', RESULTS), text);
    await writeFile(new URL('peers.svg', RESULTS), chart(results, { facts, settings }));
  } finally {
    await browser.close();
  }
}

await main().catch(error => {
  console.error(`peers: ${error.message}`);
  process.exitCode = 1;
});
