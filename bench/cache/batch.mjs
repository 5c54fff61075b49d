// Several streams that are decoded as one batch, against one stream.

import { startSequence, stepOnce } from '../../scripts/lib/wasm-engine.mjs';
import { startCpuMeter } from '../lib/cpu-meter.mjs';
import { markdownTable } from '../lib/markdown.mjs';
import { digits, median, summarise, summariseRatios, withRange } from '../lib/statistics.mjs';

const STREAMS = 4;
const PROMPT_TOKENS = 4;
const SPEEDUP_TARGET = 2.5;
const ONE = '1 stream';
const MANY = `${STREAMS} streams`;

/** Decodes `tokens` tokens in each stream. The prompts, and with them the first tokens, do not count. */
function decode(engine, streams, tokens) {
  const sequences = Array.from({ length: streams }, (_, stream) =>
    startSequence(
      engine,
      Array.from({ length: PROMPT_TOKENS }, (_, i) => 1000 * (stream + 1) + i),
    ),
  );
  let started = 0;
  while (started < streams) started = stepOnce(engine).length;
  const stop = startCpuMeter();
  for (let step = 0; step < tokens; step++) {
    const drawn = stepOnce(engine).length;
    if (drawn !== streams) throw new Error(`a step drew ${drawn} tokens for ${streams} streams`);
  }
  const { seconds, cpuSeconds } = stop();
  for (const sequence of sequences) sequence.delete();
  return { seconds, cpuSeconds };
}

/** @param {{ engine: object, tokens: number, interleave: Function }} options */
export function benchBatch({ engine, tokens, interleave }) {
  const variants = { [ONE]: 1, [MANY]: STREAMS };
  for (const streams of Object.values(variants)) decode(engine, streams, 3);
  const { samples, foreignCores } = interleave(
    Object.fromEntries(
      Object.entries(variants).map(([name, streams]) => [
        name,
        () => decode(engine, streams, tokens),
      ]),
    ),
  );
  const rates = name => samples[name].map(s => (variants[name] * tokens) / s.seconds);
  const ratio = summariseRatios(rates(MANY), rates(ONE));
  const names = Object.keys(variants);
  return {
    title: `Streams decoded as one batch: ${tokens} tokens each after ${PROMPT_TOKENS}`,
    table: markdownTable(
      ['', 'tokens/s, all streams', 'ms per step', 'CPU ms per step', 'more by'],
      names.map(name => [
        name,
        withRange(summarise(rates(name))),
        digits(median(samples[name].map(s => (1000 * s.seconds) / tokens))),
        digits(median(samples[name].map(s => (1000 * s.cpuSeconds) / tokens))),
        name === MANY ? `${withRange(ratio)}x` : '',
      ]),
    ),
    goals: [
      {
        what: `tokens/s of ${STREAMS} streams against one`,
        target: `at least ${SPEEDUP_TARGET}x`,
        measured: `${withRange(ratio)}x`,
        met: ratio.median >= SPEEDUP_TARGET,
      },
    ],
    chart: {
      title: `Streams as one batch: tokens/s of all`,
      bars: names.map(name => ({ label: name, value: summarise(rates(name)) })),
    },
    foreignCores,
  };
}
