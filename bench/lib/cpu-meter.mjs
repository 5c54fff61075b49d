// How busy others keep the machine while something of ours is measured.

import { readFileSync } from 'node:fs';

// Linux counts in hundredths of a second on every architecture.
const TICKS_PER_SECOND = 100;

/** Seconds that all processors together have worked since boot, or were kept by the host of a virtual machine. */
function busySeconds() {
  let line;
  try {
    [line] = readFileSync('/proc/stat', 'utf8').split('\n', 1);
  } catch {
    return NaN;
  }
  const [user, nice, system, , , irq, softIrq, steal] = line.split(/\s+/).slice(1).map(Number);
  return (user + nice + system + irq + softIrq + steal) / TICKS_PER_SECOND;
}

function ownSeconds() {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1e6;
}

/**
 * What has passed between two readings of { wall, busy, own }, all in seconds: of the clock, of all processors' work, and
 * of the work that counts as ours.
 */
export function usageBetween(before, after) {
  const seconds = after.wall - before.wall;
  const cpuSeconds = after.own - before.own;
  const foreign = after.busy - before.busy - cpuSeconds;
  return {
    seconds,
    /** Ours. */
    cpuSeconds,
    /** Processors that others used, on average; NaN where that cannot be told. Coarse below a second. */
    foreignCores: Math.max(0, foreign / seconds),
  };
}

/**
 * Starts measuring; the function it returns gives what has passed since.
 * @param {() => number} [own] seconds of processor time that count as ours; by default those of this process alone
 */
export function startCpuMeter(own = ownSeconds) {
  const read = () => ({ busy: busySeconds(), own: own(), wall: performance.now() / 1000 });
  const before = read();
  return () => usageBetween(before, read());
}
