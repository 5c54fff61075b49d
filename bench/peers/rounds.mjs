// What is due in each round once, one after the other, so that what disturbs the machine disturbs all alike.

/**
 * @template Sample
 * @param {{ key: string, run: (round: number) => Promise<Sample>, isDue?: (round: number) => boolean }[]} items each is due in
 *   all rounds unless it says otherwise
 * @param {number} reps rounds
 * @param {(round: number, key: string) => void} [onStart]
 * @returns {Promise<{ samples: Map<string, (Sample & { round: number })[]>, failures: Map<string, string> }>} samples by
 *   key; an item that fails is not run again, and has no samples
 */
export async function runRounds(items, reps, onStart = () => {}) {
  const samples = new Map(items.map(({ key }) => [key, []]));
  const failures = new Map();
  for (let round = 0; round < reps; round++) {
    for (const { key, run, isDue = () => true } of items) {
      if (failures.has(key) || !isDue(round)) continue;
      onStart(round, key);
      try {
        samples.get(key).push({ round, ...(await run(round)) });
      } catch (error) {
        failures.set(key, error.message);
        samples.delete(key);
      }
    }
  }
  return { samples, failures };
}
