// What the benches share: statistics, tables, charts, and the meter of what others use.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { barChart } from '../../bench/lib/bar-chart.mjs';
import { coresText, describeContention } from '../../bench/lib/contention.mjs';
import { startCpuMeter, usageBetween } from '../../bench/lib/cpu-meter.mjs';
import { markdownTable } from '../../bench/lib/markdown.mjs';
import { readOptions } from '../../bench/lib/options.mjs';
import { parseStat, processTree } from '../../bench/lib/process-tree.mjs';
import {
  digits,
  median,
  summarise,
  summariseRatios,
  withRange,
} from '../../bench/lib/statistics.mjs';

const samples = fc.array(fc.double({ min: 0.001, max: 1e6, noNaN: true }), { minLength: 1 });

test('half of the samples are not above the median, and half not below it', () => {
  fc.assert(
    fc.property(samples, values => {
      const { median: middle, min, max } = summarise(values);
      const half = values.length / 2;
      assert.equal(middle, median([...values].reverse()));
      assert.ok(values.filter(value => value <= middle).length >= half);
      assert.ok(values.filter(value => value >= middle).length >= half);
      assert.ok(min <= middle && middle <= max);
    }),
  );
  assert.equal(median([3, 1, 2]), 2);
  assert.equal(median([4, 1, 3, 2]), 2.5);
});

test('ratios are taken pair by pair', () => {
  // The medians of both lists are equal; the pairs are not.
  assert.deepEqual(summariseRatios([1, 2, 6], [2, 1, 3]), { median: 2, min: 0.5, max: 2 });
});

test('numbers have three digits, and a range where they differ', () => {
  assert.equal(digits(1234.5), '1235');
  assert.equal(digits(12.345), '12.3');
  assert.equal(digits(0.012345), '0.0123');
  assert.equal(digits(NaN), '?');
  assert.equal(withRange(summarise([2])), '2.00');
  assert.equal(withRange(summarise([1, 2, 4])), '2.00 (1.00 to 4.00)');
});

test('a table has columns of one width, and a line for each row', () => {
  const cell = fc.stringMatching(/^[a-z0-9 ]{0,12}$/);
  fc.assert(
    fc.property(fc.array(fc.tuple(cell, cell, cell), { minLength: 1 }), rows => {
      const lines = markdownTable(['a', 'b', 'c'], rows).split('\n');
      assert.equal(lines.length, rows.length + 2);
      assert.equal(new Set(lines.map(line => line.length)).size, 1);
      for (const [i, row] of rows.entries()) {
        const cells = lines[i + 2].slice(1, -1).split('|');
        assert.deepEqual(
          cells.map(text => text.trim()),
          row.map(text => text.trim()),
        );
      }
    }),
  );
});

test('a chart draws each bar in proportion, and quotes what it is given', () => {
  const value = (middle, min = middle, max = middle) => ({ median: middle, min, max });
  const bars = [
    { label: 'ours <q8>', value: value(40, 30, 50) },
    { label: 'theirs', value: value(10), isMuted: true },
  ];
  const svg = barChart('Speed & more', [{ title: 'tokens/s', bars }], ['a note']);
  assert.match(svg, /Speed &#38; more/);
  assert.match(svg, /ours &#60;q8&#62;/);
  assert.match(svg, /a note/);
  const drawn = [...svg.matchAll(/<rect x="\d+" y="\d+" width="([\d.]+)".*fill="(#\w+)"/g)];
  const [ours, theirs] = drawn.map(([, width, fill]) => ({ width: Number(width), fill }));
  assert.equal(drawn.length, 2);
  assert.ok(Math.abs(ours.width / theirs.width - 4) < 0.01);
  assert.notEqual(ours.fill, theirs.fill);
});

test('options are numbers where their defaults are, and others are refused by name', () => {
  const defaults = { reps: 3, only: undefined, build: 'simd' };
  assert.deepEqual(readOptions(defaults, []), defaults);
  const given = ['--reps', '7', '--only=batch', '--build', '12'];
  assert.deepEqual(readOptions(defaults, given), { reps: 7, only: 'batch', build: '12' });
  assert.equal(readOptions(defaults, ['--help']), undefined);
  for (const text of ['0', '-1', '1.5', 'many', '', '1e400']) {
    const refusal = { message: `--reps: '${text}' is not a positive integer` };
    assert.throws(() => readOptions(defaults, [`--reps=${text}`]), refusal);
  }
  assert.throws(() => readOptions(defaults, ['--rep', '7']), /--rep/);
});

test('what others used is the rest of what was busy, and never less than nothing', () => {
  const before = { wall: 10, busy: 100, own: 5 };
  const usage = (busy, own) => usageBetween(before, { wall: 14, busy, own });
  assert.deepEqual(usage(108, 9), { seconds: 4, cpuSeconds: 4, foreignCores: 1 });
  assert.equal(usage(104, 9).foreignCores, 0);
  // The two clocks tick at different times.
  assert.equal(usage(103.9, 9).foreignCores, 0);
  assert.equal(usage(NaN, 9).foreignCores, NaN);
});

test('a meter counts the work of this process as ours, unless told otherwise', () => {
  const stops = [startCpuMeter(), startCpuMeter(() => 0)];
  const { user, system } = process.cpuUsage();
  while (process.cpuUsage().user + process.cpuUsage().system < user + system + 50_000);
  const [ours, nobodys] = stops.map(stop => stop());
  assert.ok(ours.cpuSeconds >= 0.05);
  assert.equal(nobodys.cpuSeconds, 0);
});

test('a process has its own processor time, and that of children that ended', () => {
  const tail = '0 0 0 0 0 0 0 0 0 100 50 25 5 20 0 1 0 12345';
  for (const name of ['node', 'a (b) c', ') 9 9']) {
    assert.deepEqual(parseStat(`42 (${name}) S 7 ${tail}`), { parent: 7, cpuSeconds: 1.8 });
  }
});

test('a tree has all descendants, and no others', () => {
  const parents = { 1: 0, 2: 1, 3: 2, 4: 2, 5: 1, 6: 5 };
  const processes = new Map(
    Object.entries(parents).map(([pid, parent]) => [Number(pid), { parent, cpuSeconds: 1 }]),
  );
  const pids = root =>
    processTree(root, processes)
      .map(([pid]) => pid)
      .sort();
  assert.deepEqual(pids(2), [2, 3, 4]);
  assert.deepEqual(pids(6), [6]);
  assert.deepEqual(pids(1), [1, 2, 3, 4, 5, 6]);
  assert.deepEqual(pids(77), []);
});

test('a machine is quiet only when others were never busy', () => {
  assert.equal(coresText([0.5, 0.25, 1]), '0.50 (0.25 to 1.00)');
  assert.match(describeContention([0, 0.01, 0.02]), /^quiet: others used 0.01 /);
  assert.match(describeContention([0, 0.01, 1.5]), /^shared with other work: .*to 1\.50/);
  assert.match(describeContention([NaN]), /^not measured/);
});
