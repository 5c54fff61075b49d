// The block cache against the textbook's ways: a cache that is reallocated for each token, and none.

import { nextToken, startSequence, strategies } from '../../scripts/lib/wasm-engine.mjs';
import { markdownTable } from '../lib/markdown.mjs';
import { digits, median, summarise, summariseRatios, withRange } from '../lib/statistics.mjs';

const PROMPT = [1000, 2000, 3000, 4000];
const ORDER = ['block', 'concat', 'none'];
const SPEEDUP_TARGET = 6.1;
const TARGET_TOKENS = 200;
/** Without a cache a round takes minutes. */
export const SLOW_SHARE = 1 / 3;

function generate(engine, cache, tokens) {
  const sequence = startSequence(engine, PROMPT, { cache: strategies[cache] });
  const ids = Array.from({ length: tokens }, () => nextToken(engine));
  sequence.delete();
  return ids;
}

/**
 * @param {{ engine: object, tokens: number, interleave: Function }} options `interleave` takes variants, and the share
 *   of the rounds asked for that it is to run
 */
export function benchStrategies({ engine, tokens, interleave }) {
  let expected;
  const run = cache => () => {
    const ids = generate(engine, cache, tokens);
    expected ??= `${ids}`;
    // A wrong answer has no speed.
    if (`${ids}` !== expected) throw new Error(`cache '${cache}' drew other tokens`);
  };
  for (const cache of ORDER) generate(engine, cache, 3);
  const quick = interleave({ block: run('block'), concat: run('concat') });
  const slow = interleave({ block: run('block'), none: run('none') }, SLOW_SHARE);

  const samples = {
    block: [...quick.samples.block, ...slow.samples.block],
    concat: quick.samples.concat,
    none: slow.samples.none,
  };
  const secondsOf = list => list.map(({ seconds }) => seconds);
  const ratios = {
    concat: summariseRatios(secondsOf(samples.concat), secondsOf(quick.samples.block)),
    none: summariseRatios(secondsOf(samples.none), secondsOf(slow.samples.block)),
  };
  const rates = Object.fromEntries(
    ORDER.map(cache => [cache, summarise(secondsOf(samples[cache]).map(s => tokens / s))]),
  );
  const rows = ORDER.map(cache => [
    cache,
    withRange(summarise(secondsOf(samples[cache]))),
    digits(median(samples[cache].map(s => s.cpuSeconds))),
    withRange(rates[cache]),
    cache === 'block' ? '' : `${withRange(ratios[cache])}x`,
  ]);
  return {
    title: `Ways to keep keys and values: ${tokens} tokens after ${PROMPT.length}`,
    table: markdownTable(
      ['cache', 'seconds', 'CPU seconds', 'tokens/s', 'block is faster by'],
      rows,
    ),
    goals: [
      {
        what: `block against none, ${tokens} tokens`,
        target: `at least ${SPEEDUP_TARGET}x at ${TARGET_TOKENS}`,
        measured: `${withRange(ratios.none)}x`,
        // What a cache saves grows with the length.
        met: tokens >= TARGET_TOKENS ? ratios.none.median >= SPEEDUP_TARGET : undefined,
      },
      {
        what: `concat against block, ${tokens} tokens`,
        target: 'never faster',
        measured: `block is faster by ${withRange(ratios.concat)}x`,
        met: ratios.concat.median >= 1,
      },
    ],
    chart: {
      title: `${tokens} tokens after ${PROMPT.length}, by cache: tokens/s`,
      bars: ORDER.map(cache => ({ label: cache, value: rates[cache] })),
    },
    foreignCores: [...quick.foreignCores, ...slow.foreignCores],
  };
}
