import { summarise } from './statistics.mjs';

const QUIET = 0.1;

/** Numbers of processors: the median, with the range when there are several. */
export function coresText(foreignCores) {
  const { median, min, max } = summarise(foreignCores);
  const [middle, low, high] = [median, min, max].map(cores => cores.toFixed(2));
  return low === high ? middle : `${middle} (${low} to ${high})`;
}

/** In words, whether others used the machine, from the processors that they used meanwhile. */
export function describeContention(foreignCores) {
  const { median, max } = summarise(foreignCores);
  if (Number.isNaN(median)) return 'not measured: there is no /proc/stat';
  const state = max < QUIET ? 'quiet' : 'shared with other work';
  return `${state}: others used ${coresText(foreignCores)} processors`;
}
