// The examples for Node, in a project that has the packed package. Those for browsers are in bundlers.test.mjs, and the one
// of OpenAI's client in serve.test.mjs.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { cp } from 'node:fs/promises';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { after, before, test } from 'node:test';
import { makeProject, repository } from './support/packed-project.mjs';

let project;

before(async () => {
  project = await makeProject();
  await cp(join(repository, 'examples/node'), project.folder, { recursive: true });
});

after(() => project?.remove());

/** Runs an example on the model that comes with the package. */
async function run(name, input = '') {
  const args = [name, 'node_modules/kvasm/models/fairy-tale'];
  const stdio = ['pipe', 'pipe', 'inherit'];
  const child = spawn(process.execPath, args, { cwd: project.folder, stdio });
  child.stdin.end(input);
  const output = await text(child.stdout);
  assert.equal(child.exitCode ?? (await new Promise(resolve => child.on('exit', resolve))), 0);
  return output;
}

test('generate.mjs streams a story', async () => {
  const output = await run('generate.mjs');
  assert.match(output, /^Once upon a time.{20}.*\n\n\d+ tokens, [\d.]+ a second\n$/s);
});

test('chat.mjs goes on by turns, and takes them back', async () => {
  const lines = ['Once upon a time', 'Then a wolf', 'undo', 'Then a king', ''];
  const output = await run('chat.mjs', lines.join('\n'));
  const counts = [...output.matchAll(/\((\d+) of (\d+) tokens were computed before\)/g)];
  const turns = counts.map(([, cached, prompt]) => [Number(cached), Number(prompt)]);
  assert.equal(turns.length, 3);
  const [first, second, third] = turns;
  assert.equal(first[0], 0);
  assert.ok(second[0] > first[1]);
  assert.match(output, new RegExp(`\\(back to token ${second[0] + 1}\\)`));
  assert.ok(third[0] >= second[0]);
});
