#!/usr/bin/env node

// What the key/value cache is worth, at the shape of GPT-2 124M: one engine in one process, its variants in turns.

import { existsSync } from 'node:fs';
import { mkdir, writeFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { makeCheckpoint } from '../scripts/fixtures/make-checkpoint.mjs';
import { instantiate, loadEngine } from '../scripts/lib/wasm-engine.mjs';
import { benchBatch } from './cache/batch.mjs';
import { benchPrefix } from './cache/prefix.mjs';
import { benchStrategies, SLOW_SHARE } from './cache/strategies.mjs';
import { barChart } from './lib/bar-chart.mjs';
import { describeContention } from './lib/contention.mjs';
import { environment } from './lib/environment.mjs';
import { interleave } from './lib/interleave.mjs';
import { markdownTable } from './lib/markdown.mjs';
import { readOptions } from './lib/options.mjs';
import { digits } from './lib/statistics.mjs';

const USAGE = `Usage: bench/cache.mjs [options]

Prints its results, and writes a whole run (without --only) into bench/results/cache.md and cache.svg.

  --reps N      rounds; each runs every variant once (default: 5)
  --only NAME   strategies, prefix or batch
  --tokens N    tokens that the strategies generate (default: 200). Without a cache they take minutes
  --build NAME  the WebAssembly build, of dist/wasm (default: simd; relaxed-simd, which browsers get, needs Node 22)
  --threads N   threads that compute, with a build that has them (default: 1)
`;

const BATCH_TOKENS = 64;
const MODEL = fileURLToPath(new URL('../build/models/124M', import.meta.url));
const RESULTS = new URL('results/', import.meta.url);
// Sequences of full length that the pool has room for: cached prefixes stay beside what is being computed.
const POOL_SEQUENCES = 3;
const BENCHES = { strategies: benchStrategies, prefix: benchPrefix, batch: benchBatch };
const VERDICTS = new Map([
  [true, 'yes'],
  [false, 'no'],
  [undefined, 'not asked'],
]);
const TITLE = 'The key/value cache, measured';

function parseCommandLine() {
  const defaults = { reps: 5, tokens: 200, threads: 1, only: undefined, build: 'simd' };
  const settings = readOptions(defaults);
  const only = settings?.only;
  if (only !== undefined && !Object.hasOwn(BENCHES, only)) {
    throw new Error(`--only: '${only}' is not one of ${Object.keys(BENCHES).join(', ')}`);
  }
  return settings;
}

async function loadModel({ build, threads }) {
  if (!existsSync(`${MODEL}/model.safetensors`)) {
    console.error('making build/models/124M');
    await makeCheckpoint(MODEL, { shape: '124M' });
  }
  const module = await instantiate(build, { threads });
  // What a token takes is known once the model is; the probe has the smallest pool there is.
  const probe = await loadEngine(module, MODEL, { contextLength: 1 });
  const kvBytes = POOL_SEQUENCES * probe.config().nPositions * probe.memory().kvPerToken;
  probe.delete();
  return loadEngine(module, MODEL, { prefixCache: true, kvBytes });
}

function report(results, { reps, build, threads }, facts) {
  const settings = [
    `Node ${facts.node}, the wasm build ${build} with the SHA-256 ${facts.build}..., threads: ${threads}; commit ${facts.commit}`,
    `${facts.cpu}; ${facts.contention}`,
    `${facts.date}; ${reps} rounds in turns (those with no cache: ${Math.ceil(reps * SLOW_SHARE)}); medians, with the range in brackets; ratios are taken within a round`,
    'a random model of the shape of GPT-2 124M, f32 weights, keys and values',
    'only the engine is measured, called directly through engine.step(): no worker, messages or tokenizer',
    'CPU time is what the process itself was given: where it is less than the time, others had the processor',
  ];
  const parts = [
    `# ${TITLE}`,
    'Written by `node bench/cache.mjs`.',
    settings.map(line => `- ${line}`).join('\n'),
    markdownTable(
      ['', 'target', 'measured', 'met'],
      results
        .flatMap(result => result.goals)
        .map(({ what, target, measured, met }) => [what, target, measured, VERDICTS.get(met)]),
    ),
    ...results.flatMap(result => [
      `## ${result.title}`,
      result.table,
      `Processors that others used, by round: ${result.foreignCores.map(digits).join(', ')}.`,
    ]),
  ];
  return `${parts.join('\n\n')}\n`;
}

async function main() {
  const settings = parseCommandLine();
  if (settings === undefined) {
    process.stdout.write(USAGE);
    return;
  }
  const engine = await loadModel(settings);
  const results = [];
  for (const [name, bench] of Object.entries(BENCHES)) {
    if (settings.only !== undefined && settings.only !== name) continue;
    results.push(
      bench({
        engine,
        tokens: bench === benchBatch ? BATCH_TOKENS : settings.tokens,
        interleave: (variants, share = 1) => {
          const rounds = Math.ceil(settings.reps * share);
          return interleave(variants, rounds, (round, variant) =>
            console.error(`${name}: round ${round + 1} of ${rounds}, ${variant}`),
          );
        },
      }),
    );
  }
  const facts = {
    ...environment(`dist/wasm/kvasm-${settings.build}.wasm`),
    contention: describeContention(results.flatMap(result => result.foreignCores)),
  };
  const text = report(results, settings, facts);
  process.stdout.write(text);
  if (settings.only !== undefined) return;
  const notes = [
    `${facts.date}, commit ${facts.commit}, Node ${facts.node}`,
    facts.cpu,
    `Medians of ${settings.reps}, lines: range. The machine was ${facts.contention}.`,
  ];
  await mkdir(RESULTS, { recursive: true });
  await writeFile(new URL('cache.md', RESULTS), text);
  await writeFile(
    new URL('cache.svg', RESULTS),
    barChart(
      `${TITLE} (124M shape, f32, wasm)`,
      results.map(result => result.chart),
      notes,
    ),
  );
}

await main().catch(error => {
  console.error(`cache: ${error.message}`);
  process.exitCode = 1;
});
