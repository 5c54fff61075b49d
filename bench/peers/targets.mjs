// What we want, line by line, against what was measured.

import { digits, summarise, withRange } from '../lib/statistics.mjs';
import { buildFiles, buildName, downloadSize } from './downloads.mjs';
import { ratioOf, summary } from './results.mjs';

const PEERS = [
  { what: 'decode', metric: 'decode', precision: 'q8', target: 7 },
  { what: 'decode', metric: 'decode', precision: 'q4', target: 10 },
  { what: 'decode', metric: 'decode', precision: 'f32', target: 2 },
  { what: 'prefill', metric: 'prefill', precision: 'q8', target: 2.5 },
  { what: 'prefill', metric: 'prefill', precision: 'f32', target: 2 },
];
const READ_SHARES = { f32: 0.8, q8: 0.6 };
const TORCH_TARGET = 1.4;
const TORCH_THREADS = 2;
const NONE_TARGET = 6.1;
const NONE_TOKENS = 200;
const GZIP_TARGET = 150e3;

const NOT_MEASURED = { measured: 'not measured', met: undefined };
const isKvasm = entry => entry.name === 'kvasm';
const isPeer = entry => entry.samples[0].prefill !== undefined && !isKvasm(entry);
const threadsOf = ({ threads }) => `${threads} thread${threads === 1 ? '' : 's'}`;
const percent = ({ median, min, max }) =>
  `${withRange({ median: 100 * median, min: 100 * min, max: 100 * max })} %`;

/** The best of ours against the best of theirs, each with the number of threads that suits it. */
function againstPeers(results, { what, metric, precision, target }) {
  const line = { what: `${what} ${precision}, against the best peer`, target: `${target}x` };
  const [ours, theirs] = [isKvasm, isPeer].map(accept => results.best(precision, metric, accept));
  if (ours === undefined || theirs === undefined) return { ...line, ...NOT_MEASURED };
  const ratio = ratioOf(ours, theirs, metric);
  const rates = [ours, theirs].map(entry => digits(summary(entry, metric).median));
  const setting = `${rates[0]} with ${threadsOf(ours)}, ${theirs.name} ${rates[1]} with ${threadsOf(theirs)}`;
  return {
    ...line,
    measured: `${withRange(ratio)}x: ${setting}`,
    met: ratio.median >= target,
  };
}

/** The weights' bytes that decoding reads in a second, against the plain loop of loads. */
function againstMemory(results, precision, target, threads) {
  const line = {
    what: `bytes of weights read, decode ${precision}, ${threadsOf({ threads })}, against the read loop`,
    target: `${100 * target} %`,
  };
  const ours = results.find('kvasm', precision, threads);
  const loop = results.find('read-loop', precision, threads);
  if (ours === undefined || loop === undefined) return { ...line, ...NOT_MEASURED };
  const share = ratioOf(ours, loop, 'bytesPerSecond');
  const rates = [ours, loop].map(entry => digits(summary(entry, 'bytesPerSecond').median / 1e9));
  return {
    ...line,
    measured: `${percent(share)}: ${rates[0]} of ${rates[1]} GB/s`,
    met: share.median >= target,
  };
}

function againstTorch(results) {
  const line = {
    what: `decode f32, ${threadsOf({ threads: TORCH_THREADS })}, against PyTorch's best loop outside the browser`,
    target: `${TORCH_TARGET}x`,
  };
  const ours = results.find('kvasm', 'f32', TORCH_THREADS);
  const torch = results.find('torch', 'f32', TORCH_THREADS);
  if (ours === undefined || torch === undefined) return { ...line, ...NOT_MEASURED };
  const ratio = ratioOf(ours, torch, 'decode');
  const rates = [ours, torch].map(entry => digits(summary(entry, 'decode').median));
  return {
    ...line,
    measured: `${withRange(ratio)}x: ${rates.join(' against ')}`,
    met: ratio.median >= TORCH_TARGET,
  };
}

function againstTextbook(results, tokens) {
  const lines = [
    { what: `block cache against none, ${tokens} tokens, f32`, target: `${NONE_TARGET}x` },
    { what: `concat against block, ${tokens} tokens, f32`, target: 'never faster' },
  ];
  const entry = results.entries.find(({ name }) => name === 'strategies');
  if (entry === undefined) return lines.map(line => ({ ...line, ...NOT_MEASURED }));
  const ratio = cache =>
    summarise(
      entry.samples
        .filter(({ seconds }) => seconds[cache] !== undefined)
        .map(({ seconds }) => seconds[cache] / seconds.block),
    );
  const [none, concat] = [ratio('none'), ratio('concat')];
  return [
    {
      ...lines[0],
      measured: `${withRange(none)}x`,
      // What a cache saves grows with the length.
      met: tokens >= NONE_TOKENS ? none.median >= NONE_TARGET : undefined,
    },
    {
      ...lines[1],
      measured: `block is faster by ${withRange(concat)}x`,
      met: concat.median >= 1,
    },
  ];
}

function buildSize(results) {
  const line = { what: 'gzip size of one build and its script', target: 'under 150 KB' };
  const sizes = results.entries.filter(isKvasm).map(({ samples: [{ files }] }) => ({
    build: buildName(files),
    gzip: downloadSize(buildFiles(files)).gzip,
  }));
  if (sizes.length === 0) return { ...line, ...NOT_MEASURED };
  const { build, gzip } = sizes.sort((a, b) => b.gzip - a.gzip)[0];
  return {
    ...line,
    measured: `${digits(gzip / 1000)} KB (${build})`,
    met: gzip < GZIP_TARGET,
  };
}

/**
 * @param {import('./results.mjs').Results} results
 * @returns {{ what: string, target: string, measured: string, met: boolean | undefined }[]}
 */
export function targetLines(results, { threads, tokens }) {
  return [
    ...PEERS.map(target => againstPeers(results, target)),
    ...Object.entries(READ_SHARES).flatMap(([precision, target]) =>
      threads.map(count => againstMemory(results, precision, target, count)),
    ),
    againstTorch(results),
    ...againstTextbook(results, tokens),
    buildSize(results),
  ];
}
