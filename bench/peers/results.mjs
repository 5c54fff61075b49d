// The samples of a run, and ratios between them.

import { median, summarise, summariseRatios } from '../lib/statistics.mjs';

export const keyOf = (name, precision, threads) => `${name} ${precision} ${threads}`;

export class Results {
  /** @type {{ key: string, name: string, precision: string, threads: number, samples: object[] }[]} */
  entries;

  /** @param {object[]} items with `key`, `name`, `precision`, `threads`; those without samples are left out */
  constructor(items, samples) {
    this.entries = items
      .filter(({ key }) => samples.get(key)?.length > 0)
      .map(item => ({ ...item, samples: samples.get(item.key) }));
  }

  find(name, precision, threads) {
    const key = keyOf(name, precision, threads);
    return this.entries.find(entry => entry.key === key);
  }

  /** The entry whose median of `metric` is the largest, of those with this precision that `accept` takes. */
  best(precision, metric, accept) {
    const value = entry => median(entry.samples.map(sample => sample[metric]));
    return this.entries
      .filter(entry => entry.precision === precision && accept(entry))
      .sort((a, b) => value(b) - value(a))[0];
  }
}

export const summary = (entry, metric) => summarise(entry.samples.map(sample => sample[metric]));

/** Of metrics, round by round: samples of one round share what else the machine was doing. */
export function ratioOf(a, b, metricOfA, metricOfB = metricOfA) {
  const byRound = new Map(b.samples.map(sample => [sample.round, sample[metricOfB]]));
  const pairs = a.samples.filter(({ round }) => byRound.has(round));
  return summariseRatios(
    pairs.map(sample => sample[metricOfA]),
    pairs.map(({ round }) => byRound.get(round)),
  );
}
