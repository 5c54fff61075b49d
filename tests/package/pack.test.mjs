// The package as users get it: packed by `npm pack`, unpacked into an empty project.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { cp, mkdir, readdir, readFile, stat, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { promisify } from 'node:util';
import { makeCheckpoint } from '../../scripts/fixtures/make-checkpoint.mjs';
import { makeProject, repository } from './support/packed-project.mjs';

const run = promisify(execFile);
let packed;
let project;
let model;

before(async () => {
  packed = await makeProject();
  project = packed.folder;
  model = join(project, 'model');
  await makeCheckpoint(model, { shape: 'tiny' });
});

after(() => packed?.remove());

/** Runs a module of the project. */
async function runModule(source, ...args) {
  const path = join(project, 'main.mjs');
  await writeFile(path, source);
  const { stdout } = await run(process.execPath, [path, ...args], { cwd: project });
  return stdout;
}

test('it imports by its name, and streams', async () => {
  const output = await runModule(
    `
    import { Engine, KvasmError } from 'kvasm';
    const engine = await Engine.load(process.argv[2]);
    const tokens = {};
    for (const cache of ['block', 'concat', 'none']) {
      tokens[cache] = [];
      const options = { maxTokens: 12, temperature: 0, stopTokens: [], cache };
      for await (const { token } of engine.generate('hello', options)) tokens[cache].push(token);
    }
    const error = await engine.generate('').result().catch(error => error);
    const memory = await engine.memory();
    await engine.dispose();
    console.log(JSON.stringify({ tokens, memory, typed: error instanceof KvasmError, code: error.code }));
    `,
    model,
  );
  const { tokens, memory, typed, code } = JSON.parse(output);
  assert.equal(tokens.block.length, 12);
  assert.deepEqual(tokens.concat, tokens.block);
  assert.deepEqual(tokens.none, tokens.block);
  assert.equal(memory.kv.perToken, 2 * 2 * 32 * 4);
  assert.ok(typed);
  assert.equal(code, 'invalid-argument');
});

test('its types, those of the other entries too, compile under strict, with bundler and Node resolution', async () => {
  await writeFile(
    join(project, 'use.ts'),
    `
    import { type CacheView, Engine, KvasmError, type GenerateResult, type Session } from 'kvasm';
    export async function story(signal: AbortSignal): Promise<GenerateResult> {
      const engine = await Engine.load('https://example.test/model/', { signal });
      const run = engine.generate('Once', { maxTokens: 3, cache: 'concat', signal });
      for await (const { text, token } of run) console.log(text.toUpperCase(), token.toFixed());
      return run.result();
    }
    export async function chat(engine: Engine): Promise<Uint8Array> {
      const session: Session = engine.session();
      const { usage } = await session.generate('Hello', { overflow: 'shift', nKeep: 4 }).result();
      const { blocks }: CacheView = await engine.cacheView();
      console.log(usage.cached.toFixed(), blocks[0]?.owners.map(owner => owner.filled));
      await using fork = await session.fork();
      await fork.truncate(2);
      return fork.save();
    }
    export const codeOf = (error: KvasmError): string => error.code;
    // @ts-expect-error: the options are checked.
    export const wrong = (engine: Engine) => engine.generate('x', { maxToken: 3 });
    `,
  );
  await writeFile(
    join(project, 'interop.ts'),
    `
    import { Engine } from 'kvasm';
    import { createLanguageModel } from 'kvasm/ai-sdk';
    import { createOpenAI, OpenAIRequestError } from 'kvasm/openai';
    export async function story(engine: Engine): Promise<string> {
      const api = createOpenAI(engine, { model: 'tale' });
      const { choices } = await api.completions.create({ prompt: 'Once' });
      for await (const chunk of await api.chat.completions.create({
        messages: [{ role: 'user', content: 'Hello' }],
        stream: true,
      })) console.log(chunk.choices[0]?.delta.content?.toUpperCase());
      return choices.map(choice => choice.text).join();
    }
    export const paramOf = (error: OpenAIRequestError): string | null => error.param;
    export const idOf = (engine: Engine): string => createLanguageModel(engine).modelId;
    `,
  );
  // As whoever uses the AI SDK has it.
  await mkdir(join(project, 'node_modules/@ai-sdk'), { recursive: true });
  const provider = join(repository, 'node_modules/@ai-sdk/provider');
  await symlink(provider, join(project, 'node_modules/@ai-sdk/provider'));
  for (const [module, resolution] of [
    ['ESNext', 'Bundler'],
    ['Node16', 'Node16'],
    ['NodeNext', 'NodeNext'],
  ]) {
    await run(
      process.execPath,
      [
        ...[join(repository, 'node_modules/typescript/bin/tsc'), '--noEmit', '--strict'],
        ...['--exactOptionalPropertyTypes', '--noUncheckedIndexedAccess'],
        ...['--target', 'ES2022', '--lib', 'ES2022,DOM,ESNext.Disposable'],
        ...['--module', module, '--moduleResolution', resolution, 'use.ts', 'interop.ts'],
      ],
      { cwd: project },
    ).catch(error => assert.fail(error.stdout));
  }
});

test('the command generates', async () => {
  const cli = join(project, 'node_modules/kvasm/dist/cli/main.js');
  const args = [cli, 'generate', '--model', model, '--prompt', 'hello', '--max-tokens', '8'];
  const greedy = [...args, '--temperature', '0', '--ignore-eos'];
  const { stdout, stderr } = await run(process.execPath, [...greedy, '--stats']);
  assert.ok(stdout.length > 0);
  assert.match(stderr, /tokens\/s/);
  const again = await run(process.execPath, [...greedy, '--cache', 'none']);
  assert.equal(again.stdout, stdout);
  const cache = ['--window', '40', '--kv-dtype', 'q8', '--kv-bytes', '100000'];
  const shift = ['--overflow', 'shift', '--n-keep', '2', '--max-tokens', '600'];
  const endless = await run(process.execPath, [...greedy, '--stats', ...cache, ...shift]);
  assert.match(endless.stderr, / 0 of them cached, /);
  assert.match(endless.stderr, /takes 160 = 2 x 2 layers x 2 kv heads x \(16 \+ 4\) bytes/);
  assert.match(endless.stderr, /decode: 600 tokens in all/);
  const refused = await run(process.execPath, [...greedy, '--kv-dtype', 'q4']).catch(e => e);
  assert.equal(refused.code, 2);
  assert.match(refused.stderr, /--kv-dtype must be 'f32' or 'f16' or 'q8'/);
});

test('every file that package.json names is there', async () => {
  const { installed } = packed;
  const manifest = JSON.parse(await readFile(join(installed, 'package.json'), 'utf8'));
  const targets = JSON.stringify([manifest.exports, manifest.bin, manifest.sideEffects]);
  const named = [...targets.matchAll(/"(\.\/[^"]+\.(?:js|ts|json))"/g)].map(([, name]) => name);
  assert.ok(named.includes('./dist/openai/index.d.ts'), `${named}`);
  for (const name of named) {
    if (name in manifest.exports) continue;
    assert.ok((await stat(join(installed, name))).isFile(), name);
  }
  assert.deepEqual(manifest.dependencies, undefined);
});

test('it holds what it needs, and no source or test', async () => {
  const { installed } = packed;
  const files = await readdir(installed, { recursive: true });
  for (const file of ['package.json', 'README.md', 'dist/index.js', 'dist/index.d.ts']) {
    assert.ok(files.includes(file), file);
  }
  assert.ok(!files.some(file => /^(src|tests|bindings|scripts|web)\b/.test(file)));
  // Pages may forbid eval by their Content-Security-Policy (B108).
  for (const file of files.filter(name => name.endsWith('.js'))) {
    const script = await readFile(join(installed, file), 'utf8');
    assert.ok(!/\bnew Function\b|\beval\(/.test(script), file);
  }
});

test('a project without a bundler or Node types needs no configuration', async () => {
  // A copy elsewhere: nothing may depend on where node_modules is.
  const elsewhere = join(project, 'vendor');
  await cp(join(project, 'node_modules/kvasm/dist'), elsewhere, { recursive: true });
  const output = await runModule(
    `
    import { Engine } from './vendor/node.js';
    const engine = await Engine.load(process.argv[2]);
    console.log(engine.info.config.nLayer);
    await engine.dispose();
    `,
    model,
  );
  assert.equal(output.trim(), '2');
});
