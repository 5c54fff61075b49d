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

/** Starts measuring; the function it returns gives what has passed since. */
export function startCpuMeter() {
  const started = { busy: busySeconds(), own: ownSeconds(), wall: performance.now() };
  return () => {
    const seconds = (performance.now() - started.wall) / 1000;
    const cpuSeconds = ownSeconds() - started.own;
    const foreign = busySeconds() - started.busy - cpuSeconds;
    return {
      seconds,
      /** Of this process. */
      cpuSeconds,
      /** Processors that others used, on average; NaN where that cannot be told. Coarse below a second. */
      foreignCores: Math.max(0, foreign / seconds),
    };
  };
}
