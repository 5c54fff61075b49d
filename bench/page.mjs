#!/usr/bin/env node

// What drawing the cache costs: the page generates with its live view on and off, in turns, in one browser.

import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { launchChromium, openPage } from '../tests/browser/support/chromium.mjs';
import { DemoPage } from '../tests/browser/support/demo-page.mjs';
import { madeUpModel } from '../tests/browser/support/models.mjs';
import { buildSite } from '../tests/browser/support/site.mjs';
import { isolation, serve } from '../tests/browser/support/static-server.mjs';
import { describeContention } from './lib/contention.mjs';
import { startCpuMeter } from './lib/cpu-meter.mjs';
import { environment } from './lib/environment.mjs';
import { markdownTable } from './lib/markdown.mjs';
import { readOptions } from './lib/options.mjs';
import { treeCpuSeconds } from './lib/process-tree.mjs';
import { digits, summarise, summariseRatios, withRange } from './lib/statistics.mjs';
import { runRounds } from './peers/rounds.mjs';

const USAGE = `Usage: bench/page.mjs [options]

Prints its results, and writes a whole run (without --only) into bench/results/page.md.

  --reps N      rounds; each runs with and without drawing (default: 11)
  --only NAME   bundled or 124M
`;
const WASM = 'dist/wasm/kvasm-simd.wasm';
const RESULTS = new URL('results/', import.meta.url);
const MOST_LOSS = 0.05;
const SHAPE = '124M';
// Runs long enough to be painted several times, and short enough for many of them.
const MODELS = {
  bundled: { title: 'the bundled one', tokens: 256 },
  [SHAPE]: { title: `random, of GPT-2 ${SHAPE}'s shape`, tokens: 64 },
};

function parseCommandLine() {
  const settings = readOptions({ reps: 11, only: undefined });
  const only = settings?.only;
  if (only !== undefined && !Object.hasOwn(MODELS, only)) {
    throw new Error(`--only: '${only}' is not one of ${Object.keys(MODELS).join(', ')}`);
  }
  return settings;
}

/** The site, with the random model beside the one that it has. */
async function serveWithRandomModel(site) {
  const { models } = JSON.parse(await readFile(join(site.folder, 'models.json'), 'utf8'));
  const random = { id: SHAPE, name: SHAPE, random: true, folder: `models/${SHAPE}/`, bytes: 0 };
  const folders = { [`/models/${SHAPE}/`]: await madeUpModel(SHAPE), '/': site.folder };
  const texts = { '/models.json': JSON.stringify({ models: [...models, random] }) };
  return await serve({ folders, texts, headers: isolation });
}

/** Generates once, and returns the engine's own rate with how busy the machine was meanwhile. */
async function measure(demo, live, tokens) {
  await demo.page.setChecked('#live-view', live);
  const own = () => treeCpuSeconds(process.pid);
  const stop = startCpuMeter(own);
  await demo.generate({ 'max-tokens': tokens, temperature: 0.8, seed: 1 });
  const { foreignCores } = stop();
  return { rate: await demo.number('tokens-per-second'), foreignCores };
}

/** Samples of both ways, by round, on a page of its own. */
async function measureModel(browser, url, name, reps) {
  const { tokens } = MODELS[name];
  const { page, close } = await openPage(browser, { viewport: { width: 1440, height: 900 } });
  try {
    const demo = new DemoPage(page);
    await demo.open(url);
    if (name !== 'bundled') {
      await demo.chooseSource(name);
      await page.click('#change-model');
    }
    // What is compiled and loaded at first counts for neither.
    for (const live of [true, false]) await measure(demo, live, tokens);
    const items = [
      { key: 'drawn', run: () => measure(demo, true, tokens) },
      { key: 'not drawn', run: () => measure(demo, false, tokens) },
    ];
    const { samples, failures } = await runRounds(items, reps, (round, key) =>
      console.error(`${name}: round ${round + 1} of ${reps}, ${key}`),
    );
    for (const [key, message] of failures) throw new Error(`${name}, ${key}: ${message}`);
    return samples;
  } finally {
    await close();
  }
}

function row(name, samples) {
  const [drawn, plain] = ['drawn', 'not drawn'].map(key => samples.get(key).map(run => run.rate));
  const ratios = summariseRatios(drawn, plain);
  const loss = 1 - ratios.median;
  return [
    MODELS[name].title,
    String(MODELS[name].tokens),
    withRange(summarise(drawn)),
    withRange(summarise(plain)),
    withRange(ratios),
    `${digits(100 * loss)} %`,
    loss < MOST_LOSS ? 'yes' : 'no',
  ];
}

function report(results, reps) {
  const facts = environment(WASM);
  const runs = [...results.values()].flatMap(samples => [...samples.values()].flat());
  const settings = [
    `${reps} rounds in turns, in Chromium without a GPU; commit ${facts.commit}`,
    `${facts.cpu}; ${facts.date}; ${describeContention(runs.map(run => run.foreignCores))}`,
    'rates are those that the engine tells: medians, with the range in brackets; ratios are taken within a round',
    "the page's defaults: weights in 8 bits, keys and values in 32, half of the processors compute",
  ];
  const parts = [
    '# What drawing the cache costs',
    'Written by `node bench/page.mjs`.',
    settings.map(line => `- ${line}`).join('\n'),
    markdownTable(
      [
        'the model is',
        'tokens a run',
        'tokens/s, drawn',
        'not drawn',
        'ratio',
        'the cost',
        `below ${100 * MOST_LOSS} %`,
      ],
      [...results].map(([name, samples]) => row(name, samples)),
    ),
  ];
  return `${parts.join('\n\n')}\n`;
}

async function main() {
  const settings = parseCommandLine();
  if (settings === undefined) {
    process.stdout.write(USAGE);
    return;
  }
  const site = await buildSite();
  const server = await serveWithRandomModel(site);
  const browser = await launchChromium();
  try {
    const results = new Map();
    for (const name of Object.keys(MODELS)) {
      if (settings.only !== undefined && settings.only !== name) continue;
      results.set(name, await measureModel(browser, server.url, name, settings.reps));
    }
    const text = report(results, settings.reps);
    process.stdout.write(text);
    if (settings.only !== undefined) return;
    await mkdir(RESULTS, { recursive: true });
    await writeFile(new URL('page.md', RESULTS), text);
  } finally {
    await browser.close();
    await server.close();
    await site.remove();
  }
}

await main().catch(error => {
  console.error(`page: ${error.message}`);
  process.exitCode = 1;
});
