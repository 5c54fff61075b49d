// The time to the first token of a prompt whose beginning an earlier one shared, against a cold one.

import { nextToken, startSequence } from '../../scripts/lib/wasm-engine.mjs';
import { startCpuMeter } from '../lib/cpu-meter.mjs';
import { markdownTable } from '../lib/markdown.mjs';
import { digits, median, summarise, summariseRatios, withRange } from '../lib/statistics.mjs';

const SHARED = 512;
const OWN = 8;
const SPEEDUP_TARGET = 10;
const REUSED_TARGET = 496;
const COLD = 'cold';
const HIT = 'prefix hit';

/** Ids that look random, and differ for each seed. */
const someIds = (count, seed, vocabSize) =>
  Array.from({ length: count }, (_, i) => ((i + 1) * 7919 + (seed + 1) * 104729) % vocabSize);

/** The first token: how long it takes, how much is reused, and the logits it is drawn from. */
function firstToken(engine, prompt, reusePrefix) {
  const stop = startCpuMeter();
  const sequence = startSequence(engine, prompt, { reusePrefix });
  nextToken(engine);
  const { seconds, cpuSeconds } = stop();
  const reused = sequence.reused();
  const logits = Float32Array.from(sequence.logits());
  sequence.delete();
  return { seconds, cpuSeconds, reused, logits };
}

/** @param {{ engine: object, interleave: Function }} options the engine has a prefix cache, with room for more than a prompt */
export function benchPrefix({ engine, interleave }) {
  const { vocabSize } = engine.config();
  const shared = someIds(SHARED, 0, vocabSize);
  const promptOf = round => [...shared, ...someIds(OWN, round + 2, vocabSize)];
  // Leaves the shared prefix behind, and warms both ways up.
  firstToken(engine, promptOf(-1), true);
  firstToken(engine, promptOf(-2), true);

  let expected;
  const { samples, foreignCores } = interleave({
    [COLD]: round => {
      const { logits, ...measured } = firstToken(engine, promptOf(round), false);
      expected = logits;
      return measured;
    },
    [HIT]: round => {
      const { logits, ...measured } = firstToken(engine, promptOf(round), true);
      if (Buffer.compare(Buffer.from(logits.buffer), Buffer.from(expected.buffer)) !== 0) {
        throw new Error('a prefix hit gives other logits than a cold start');
      }
      return measured;
    },
  });

  const milliseconds = name => samples[name].map(s => s.seconds * 1000);
  const ratio = summariseRatios(milliseconds(COLD), milliseconds(HIT));
  const reused = Math.min(...samples[HIT].map(s => s.reused));
  return {
    title: `Time to the first token of ${SHARED + OWN}, of which an earlier prompt had the first ${SHARED}`,
    table: markdownTable(
      ['', 'tokens reused', 'ms to the first token', 'CPU ms', 'faster by'],
      [COLD, HIT].map(name => [
        name,
        String(Math.min(...samples[name].map(s => s.reused))),
        withRange(summarise(milliseconds(name))),
        digits(median(samples[name].map(s => s.cpuSeconds * 1000))),
        name === HIT ? `${withRange(ratio)}x` : '',
      ]),
    ),
    goals: [
      {
        what: `tokens reused of a shared prefix of ${SHARED}`,
        target: `at least ${REUSED_TARGET}`,
        measured: String(reused),
        met: reused >= REUSED_TARGET,
      },
      {
        what: 'time to the first token, prefix hit against cold',
        target: `at least ${SPEEDUP_TARGET}x less`,
        measured: `${withRange(ratio)}x less`,
        met: ratio.median >= SPEEDUP_TARGET,
      },
    ],
    chart: {
      title: `First token of a prompt of ${SHARED + OWN}: ms, less is better`,
      bars: [COLD, HIT].map(name => ({ label: name, value: summarise(milliseconds(name)) })),
    },
    foreignCores,
  };
}
