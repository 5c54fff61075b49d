// Threads and variants of the built package in Node.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { promisify } from 'node:util';
import { makeCheckpoint } from '../../scripts/fixtures/make-checkpoint.mjs';

const dist = new URL('../../dist/node.js', import.meta.url);
const wasmEngine = new URL('../../scripts/lib/wasm-engine.mjs', import.meta.url);
const { Engine } = await import(dist);
const run = promisify(execFile);
const options = { temperature: 0, stopTokens: [], maxTokens: 40 };
const twoSeconds = 2000;
let model;

before(async () => {
  model = await mkdtemp(join(tmpdir(), 'kvasm-threads-'));
  // Enough outputs for threads to share.
  await makeCheckpoint(model, { nLayer: 2, nHead: 6, nEmbd: 384, nPositions: 256, std: 0.2 });
});

after(() => rm(model, { recursive: true, force: true }));

async function tokensWith(loadOptions) {
  const engine = await Engine.load(model, loadOptions);
  const { tokens } = await engine.generate('Once upon a time', options).result();
  await engine.dispose();
  return { info: engine.info, tokens: [...tokens] };
}

/** What a module prints in a process of its own, which has to end by itself. */
async function printed(source, ...flags) {
  const code = `
    const { Engine } = await import(${JSON.stringify(dist.href)});
    const model = ${JSON.stringify(model)};
    ${source}`;
  const args = [...flags, '--input-type=module', '-e', code];
  const { stdout } = await run(process.execPath, args, { timeout: 100_000 });
  return stdout.trim();
}

test('any number of threads generates the same tokens, and the engine says how many and why', async () => {
  const { tokens } = await tokensWith({ threads: 1 });
  for (const threads of [2, 3, 8]) {
    const { info, tokens: others } = await tokensWith({ threads });
    assert.equal(info.threads, threads);
    assert.equal(info.threadsReason, `threads is ${threads}`);
    assert.deepEqual(others, tokens);
  }
});

test('by default at most half of the processors compute (B118)', async () => {
  const engine = await Engine.load(model);
  await engine.dispose();
  assert.ok(engine.info.threads <= Math.max(availableParallelism() / 2, 1));
  assert.match(engine.info.threadsReason, /^half of \d+ processors/);
});

test('the process ends, with and without dispose (B113)', async () => {
  for (const end of ['await engine.dispose();', '']) {
    const source = `
      const engine = await Engine.load(model, { threads: 4 });
      await engine.generate('a', { maxTokens: 3 }).result();
      ${end}
      console.log(engine.info.threads);`;
    assert.equal(await printed(source), '4');
  }
});

test('ten loads with threads leave none of them behind (B113)', async () => {
  const source = `
    import { readdirSync } from 'node:fs';
    const count = () => readdirSync('/proc/self/task').length;
    const once = async () => {
      const engine = await Engine.load(model, { threads: 4 });
      await engine.generate('a', { maxTokens: 3 }).result();
      await engine.dispose();
    };
    await once();
    const before = count();
    for (let i = 0; i < 10; i++) await once();
    console.log(count() - before <= 0);`;
  assert.equal(await printed(source), 'true');
});

for (const how of ['in-a-piece', 'between']) {
  test(`a thread that dies ${how} crashes its engine within two seconds, and no other`, async () => {
    const other = await Engine.load(model, { threads: 2 });
    const workerUrl = new URL(`./support/dying-threads-worker.mjs?how=${how}`, import.meta.url);
    const dying = await Engine.load(model, { threads: 3, workerUrl });
    const started = performance.now();
    const error = await dying
      .generate('a', { ...options, maxTokens: 1e6, overflow: 'shift' })
      .result()
      .then(
        () => assert.fail('it went on'),
        reason => reason,
      );
    assert.equal(error.name, 'EngineClosedError');
    assert.equal(error.code, 'crashed');
    assert.ok(performance.now() - started < 500 + twoSeconds);
    await assert.rejects(dying.memory(), { code: 'crashed' });
    const { tokens } = await other.generate('a', options).result();
    assert.equal(tokens.length, 40);
    await other.dispose();
  });
}

test('a variant that is asked for is used, or refused', async () => {
  const { info } = await tokensWith({ variant: 'simd' });
  assert.equal(info.variant, 'simd');
  assert.equal(info.variantReason, "variant is 'simd'");
  await assert.rejects(Engine.load(model, { variant: 'simd2' }), { code: 'invalid-argument' });
  await assert.rejects(Engine.load(model, { threads: 0 }), { code: 'invalid-argument' });
});

test('relaxed SIMD that computes wrong is not used', async t => {
  // Node 20 has it behind a flag, with a dot product that is wrong on some processors.
  if (Number(process.versions.node.split('.')[0]) > 20) {
    return t.skip('this Node has relaxed SIMD without a flag');
  }
  const source = `
    const { instantiate } = await import(${JSON.stringify(wasmEngine.href)});
    const module = await instantiate('relaxed-simd');
    const { info } = await Engine.load(model);
    const forced = await Engine.load(model, { variant: 'relaxed-simd' }).then(() => '', e => e.code);
    console.log(JSON.stringify({ works: module.relaxedSimdWorks(), info, forced }));`;
  const { works, info, forced } = JSON.parse(
    await printed(source, '--experimental-wasm-relaxed-simd'),
  );
  assert.equal(info.variant, works ? 'relaxed-simd' : 'simd');
  assert.match(info.variantReason, works ? /works/ : /computes wrong with relaxed SIMD/);
  assert.equal(forced, works ? '' : 'unsupported');
});
