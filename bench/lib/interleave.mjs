// Measures variants in turns, so that what disturbs the machine disturbs them alike.

import { startCpuMeter } from './cpu-meter.mjs';

/**
 * Runs every variant once in each of `reps` rounds.
 *
 * @param {Record<string, (round: number) => object | undefined>} variants each does its work, and may return more about
 *   it; `seconds` and `cpuSeconds` where not all of the work counts
 * @param {(round: number, name: string) => void} [onStart]
 * @returns {{ samples: Record<string, object[]>, foreignCores: number[] }} samples by variant, one for each round, with
 *   `seconds` and `cpuSeconds`; processors that others used, by round
 */
export function interleave(variants, reps, onStart = () => {}) {
  const samples = Object.fromEntries(Object.keys(variants).map(name => [name, []]));
  const foreignCores = [];
  for (let round = 0; round < reps; round++) {
    const stopRound = startCpuMeter();
    for (const [name, run] of Object.entries(variants)) {
      onStart(round, name);
      const stop = startCpuMeter();
      const measured = run(round);
      const { seconds, cpuSeconds } = stop();
      samples[name].push({ seconds, cpuSeconds, ...measured });
    }
    foreignCores.push(stopRound().foreignCores);
  }
  return { samples, foreignCores };
}
