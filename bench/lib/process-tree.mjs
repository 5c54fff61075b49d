// What Linux knows about a process and those that it started.

import { existsSync, readdirSync, readFileSync } from 'node:fs';

// Linux counts in hundredths of a second on every architecture.
const TICKS_PER_SECOND = 100;

/** The fields of a line of /proc/PID/stat; the name of the program in it may have spaces and brackets. */
export function parseStat(line) {
  const fields = line.slice(line.lastIndexOf(')') + 2).split(' ');
  // In user and kernel mode, its own and that of children which have ended.
  const ticks = fields.slice(11, 15).reduce((sum, field) => sum + Number(field), 0);
  return { parent: Number(fields[1]), cpuSeconds: ticks / TICKS_PER_SECOND };
}

/** None where there is no /proc. */
function readProcesses() {
  const processes = new Map();
  for (const name of existsSync('/proc') ? readdirSync('/proc') : []) {
    if (!/^\d+$/.test(name)) continue;
    try {
      processes.set(Number(name), parseStat(readFileSync(`/proc/${name}/stat`, 'utf8')));
    } catch {
      // It has ended meanwhile.
    }
  }
  return processes;
}

/**
 * A process and its descendants, as [pid, process] pairs.
 * @param {number} root
 * @param {Map<number, { parent: number, cpuSeconds: number }>} [processes] all there are, by pid
 */
export function processTree(root, processes = readProcesses()) {
  const children = new Map();
  for (const [pid, { parent }] of processes) {
    children.set(parent, [...(children.get(parent) ?? []), pid]);
  }
  const tree = [];
  const waiting = [root];
  while (waiting.length > 0) {
    const pid = waiting.pop();
    if (processes.has(pid)) tree.push([pid, processes.get(pid)]);
    waiting.push(...(children.get(pid) ?? []));
  }
  return tree;
}

/** Seconds of processor time that a process and its descendants have had. */
export const treeCpuSeconds = root =>
  processTree(root).reduce((sum, [, { cpuSeconds }]) => sum + cpuSeconds, 0);

/** The most memory that the largest renderer of a browser below `root` has had at once, in bytes; NaN where that cannot be told. */
export function peakRendererBytes(root) {
  const peaks = processTree(root).map(([pid]) => {
    try {
      if (!readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes('--type=renderer')) return 0;
      return (
        1024 * Number(/^VmHWM:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))[1])
      );
    } catch {
      return 0;
    }
  });
  const peak = Math.max(0, ...peaks);
  return peak === 0 ? NaN : peak;
}
