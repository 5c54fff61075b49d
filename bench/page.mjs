#!/usr/bin/env node

// What drawing the cache costs: the page generates with its live view on and off, in turns, in one browser.

import { mkdir, writeFile } from 'node:fs/promises';
import { parseArgs } from 'node:util';
import { launchChromium, openPage } from '../tests/browser/support/chromium.mjs';
import { DemoPage } from '../tests/browser/support/demo-page.mjs';
import { buildSite } from '../tests/browser/support/site.mjs';
import { isolation, serve } from '../tests/browser/support/static-server.mjs';
import { describeContention } from './lib/contention.mjs';
import { startCpuMeter } from './lib/cpu-meter.mjs';
import { environment } from './lib/environment.mjs';
import { markdownTable } from './lib/markdown.mjs';
import { treeCpuSeconds } from './lib/process-tree.mjs';
import { digits, summarise, summariseRatios, withRange } from './lib/statistics.mjs';
import { runRounds } from './peers/rounds.mjs';

const USAGE = `Usage: bench/page.mjs [options]

Prints its results, and writes them into bench/results/page.md.

  --reps N      rounds; each runs with and without drawing (default: 9)
  --tokens N    tokens of a run (default: 256)
`;
const WASM = 'dist/wasm/kvasm-simd.wasm';
const RESULTS = new URL('results/', import.meta.url);
const MOST_LOSS = 0.05;

function parseCommandLine() {
  const { values } = parseArgs({
    options: {
      reps: { type: 'string', default: '9' },
      tokens: { type: 'string', default: '256' },
      help: { type: 'boolean' },
    },
  });
  if (values.help) return undefined;
  const [reps, tokens] = ['reps', 'tokens'].map(name => {
    const number = Number(values[name]);
    if (Number.isSafeInteger(number) && number > 0) return number;
    throw new Error(`--${name}: '${values[name]}' is not a positive integer`);
  });
  return { reps, tokens };
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

function report(samples, { reps, tokens }) {
  const rates = new Map([...samples].map(([key, runs]) => [key, runs.map(({ rate }) => rate)]));
  const ratios = summariseRatios(rates.get('drawn'), rates.get('not drawn'));
  const loss = 1 - ratios.median;
  const facts = environment(WASM);
  const foreignCores = [...samples.values()].flat().map(run => run.foreignCores);
  const settings = [
    `the bundled model, ${tokens} tokens a run, ${reps} rounds in turns, in Chromium without a GPU; commit ${facts.commit}`,
    `${facts.cpu}; ${facts.date}; ${describeContention(foreignCores)}`,
    'rates are those that the engine tells; ratios are taken within a round',
  ];
  const parts = [
    '# What drawing the cache costs',
    'Written by `node bench/page.mjs`.',
    settings.map(line => `- ${line}`).join('\n'),
    markdownTable(
      ['the cache is', 'tokens/s'],
      [...rates].map(([key, values]) => [key, withRange(summarise(values))]),
    ),
    `Drawn against not drawn: ${withRange(ratios)}. Drawing costs ${digits(100 * loss)} % of the throughput; ` +
      `the target is less than ${100 * MOST_LOSS} %: ${loss < MOST_LOSS ? 'met' : 'not met'}.`,
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
  const server = await serve({ folders: { '/': site.folder }, headers: isolation });
  const browser = await launchChromium();
  try {
    const { page } = await openPage(browser, { viewport: { width: 1440, height: 900 } });
    const demo = new DemoPage(page);
    await demo.open(server.url);
    // What is compiled and loaded at first counts for neither.
    await measure(demo, true, settings.tokens);
    const items = [
      { key: 'drawn', run: () => measure(demo, true, settings.tokens) },
      { key: 'not drawn', run: () => measure(demo, false, settings.tokens) },
    ];
    const { samples, failures } = await runRounds(items, settings.reps, (round, key) =>
      console.error(`round ${round + 1} of ${settings.reps}, ${key}`),
    );
    for (const [key, message] of failures) throw new Error(`${key}: ${message}`);
    const text = report(samples, settings);
    process.stdout.write(text);
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
