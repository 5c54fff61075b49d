import { describe, expect, it } from 'vitest';

import { hubOptions } from '../../bindings/ts/cli/download-flags.js';
import { readable } from '../../bindings/ts/cli/generate.js';
import { formatBytes, ProgressBar, progressLine } from '../../bindings/ts/cli/progress-bar.js';
import { formatStats } from '../../bindings/ts/cli/stats.js';
import { messageInFlags, parseCommand } from '../../bindings/ts/cli/usage.js';
import { UsageError } from '../../bindings/ts/cli/usage-error.js';
import { InvalidArgumentError } from '../../bindings/ts/errors.js';
import type { KvDtype } from '../../bindings/ts/types.js';
import { loadFake } from './harness.js';

describe('the command line', () => {
  it('becomes options of generate', () => {
    const line =
      'generate --model m --prompt p --max-tokens 5 --temperature 0.5 --top-k 3 --top-p .9 --min-p .01 ' +
      '--repetition-penalty 1.1 --frequency-penalty .2 --presence-penalty .3 --stop a --stop b --echo ' +
      '--seed 7 --cache none --stats --ignore-eos --window 9 --kv-dtype q8 --kv-bytes 4096 ' +
      '--overflow shift --n-keep 2 --file a.gguf --storage d';
    expect(parseCommand(line.split(' '))).toEqual({
      name: 'generate',
      generate: {
        model: 'm',
        prompt: 'p',
        stats: true,
        load: {
          window: 9,
          kvDtype: 'q8',
          kvBytes: 4096,
          file: 'a.gguf',
          storage: { directory: 'd' },
        },
        options: {
          maxTokens: 5,
          temperature: 0.5,
          topK: 3,
          topP: 0.9,
          minP: 0.01,
          repetitionPenalty: 1.1,
          frequencyPenalty: 0.2,
          presencePenalty: 0.3,
          stop: ['a', 'b'],
          echo: true,
          seed: 7,
          cache: 'none',
          overflow: 'shift',
          nKeep: 2,
          stopTokens: [],
        },
      },
    });
  });

  it('draws as the model says, or else with care', () => {
    expect(readable({ temperature: 0.7 })).toEqual({});
    expect(readable({ topK: 40 })).toEqual({});
    expect(readable({ maxTokens: 5 })).toEqual({ temperature: 0.8, topP: 0.95 });
  });

  it('leaves all defaults to the engine', () => {
    expect(parseCommand(['generate', '--prompt', '-'])).toEqual({
      name: 'generate',
      generate: {
        model: undefined,
        prompt: '-',
        stats: false,
        load: {},
        options: {},
      },
    });
  });

  it('asks for help or the version, with anything else', () => {
    expect(parseCommand(['--help'])).toEqual({ name: 'help' });
    expect(parseCommand(['generate', '-h'])).toEqual({ name: 'help' });
    expect(parseCommand(['--version'])).toEqual({ name: 'version' });
  });

  it.each([
    [[], /no command/],
    [['sing'], /no command "sing"; there are: generate, serve, cache/],
    [['generate'], /--prompt is missing/],
    [['cache'], /ls and rm/],
    [['cache', 'ls'], /--storage is missing/],
    [['cache', 'ls', 'a', '--storage', 'd'], /ls lists everything/],
    [['cache', 'rm', '--storage', 'd'], /takes models, or --all/],
    [['cache', 'rm', 'a', '--all', '--storage', 'd'], /takes models, or --all/],
    [['generate', '--prompt', 'Once', 'upon'], /"upon"\? Quote/],
    [['generate', '--prompt', 'a', '--max-tokens', 'many'], /--max-tokens must be a number, not/],
    [['generate', '--prompt', 'a', '--seed', ''], /--seed must be a number, not ""/],
    [['generate', '--prompt', 'a', '--speed', '9'], /--speed/],
  ])('is refused: %j', (args, message) => {
    expect(() => parseCommand(args)).toThrow(UsageError);
    expect(() => parseCommand(args)).toThrow(message);
  });

  it('lists and deletes what was kept', () => {
    const parse = (line: string) => parseCommand(line.split(' '));
    const cache = { directory: 'd', remove: undefined };
    expect(parse('cache ls --storage d')).toEqual({ name: 'cache', cache });
    const remove = ['a/b', 'c'];
    expect(parse('cache rm --storage d a/b c')).toMatchObject({ cache: { remove } });
    expect(parse('cache rm --storage d --all')).toMatchObject({ cache: { remove: 'all' } });
    expect(parse('cache --help')).toEqual({ name: 'cache-help' });
  });

  it('takes the hub and its token from where the hub’s own tools do', () => {
    expect(hubOptions({})).toEqual({});
    const environment = { HF_TOKEN: 't', HF_ENDPOINT: 'https://hub.test' };
    expect(hubOptions(environment)).toEqual({ hubToken: 't', hubUrl: 'https://hub.test' });
  });

  it('serves, to this machine only unless told otherwise', () => {
    expect(parseCommand(['serve'])).toEqual({
      name: 'serve',
      serve: {
        model: undefined,
        name: undefined,
        host: '127.0.0.1',
        port: 8080,
        maxBody: 1_000_000,
        allowedHosts: [],
        allowedOrigins: [],
        load: {},
      },
    });
    const line =
      'serve --model m --name n --host ::1 --port 0 --cors http://a.test/ --cors https://b.test:1 ' +
      '--allow-host Box.local --max-body 10 --window 9 --kv-dtype q8 --kv-bytes 4096';
    expect(parseCommand(line.split(' '))).toEqual({
      name: 'serve',
      serve: {
        model: 'm',
        name: 'n',
        host: '::1',
        port: 0,
        maxBody: 10,
        allowedHosts: ['box.local'],
        allowedOrigins: ['http://a.test', 'https://b.test:1'],
        load: { window: 9, kvDtype: 'q8', kvBytes: 4096 },
      },
    });
    expect(parseCommand(['serve', '-h'])).toEqual({ name: 'serve-help' });
  });

  it.each([
    [['--port', '70000'], /--port must be an integer from 0 to 65535, not "70000"/],
    [['--cors', '*'], /--cors must be an origin, .* not "\*"/],
    [['--cors', 'http://a.test/path'], /--cors must be an origin/],
    [['--cors', 'file:///x'], /--cors must be an origin/],
    [['here'], /"here"\?/],
    [['--speed', '9'], /--speed/],
  ])('does not serve with %j', (args, message) => {
    expect(() => parseCommand(['serve', ...args])).toThrow(UsageError);
    expect(() => parseCommand(['serve', ...args])).toThrow(message);
  });

  it('has its own names for options', () => {
    const error = new InvalidArgumentError('maxTokens must be an integer of at least 0, not -1.');
    expect(messageInFlags(error)).toBe('--max-tokens must be an integer of at least 0, not -1.');
    const kept = new InvalidArgumentError('nKeep must be an integer of at least 0, not -1.');
    expect(messageInFlags(kept)).toMatch(/^--n-keep must/);
    const penalty = new InvalidArgumentError('repetitionPenalty must be a finite number.');
    expect(messageInFlags(penalty)).toBe('--repetition-penalty must be a finite number.');
  });
});

describe('progress', () => {
  it('is a share where the whole is known', () => {
    expect(progressLine(0, 200)).toBe(`[${'.'.repeat(30)}]  0% of 200 B`);
    expect(progressLine(100, 200)).toContain(' 50% of 200 B');
    expect(progressLine(200, 200)).toBe(`[${'#'.repeat(30)}]100% of 200 B`);
    expect(progressLine(0, 0)).toContain('100%');
    expect(progressLine(1_500_000, undefined)).toBe('1.5 MB');
  });

  it.each([
    [999, '999 B'],
    [1000, '1.0 kB'],
    [999_949, '999.9 kB'],
    [999_950, '1.0 MB'],
    [4_294_967_296, '4.3 GB'],
    [5e12, '5000.0 GB'],
  ])('writes %i bytes as %s', (bytes, text) => {
    expect(formatBytes(bytes)).toBe(text);
  });

  it('is drawn on terminals only', () => {
    for (const isTTY of [true, false]) {
      const written: string[] = [];
      const out = { isTTY, write: (text: string) => written.push(text) };
      const bar = new ProgressBar(out as unknown as NodeJS.WriteStream);
      const progress = { loaded: 1, total: 2 };
      bar.update({ phase: 'weights', file: 'm', ...progress, overall: progress });
      bar.clear();
      expect(written).toHaveLength(isTTY ? 2 : 0);
    }
  });
});

it('--stats shows how the bytes of a token come about', async () => {
  const { engine } = await loadFake();
  const result = await engine.generate('abc', { maxTokens: 5 }).result();
  const text = formatStats(engine.info, { ...result, timings: { ...result.timings, load: 12.3 } });
  expect(text).toContain('load: 12.3 ms (simd, 1 thread)');
  expect(text).toContain('prompt: 3 tokens, 0 of them cached, ');
  expect(text).toContain('896 bytes used (7 tokens) of 16384 reserved');
  expect(text).toContain('128 = 2 x 2 layers x 2 kv heads x 4 x 4 bytes');
  const stats = (kvDtype: KvDtype) => formatStats({ ...engine.info, kvDtype }, result);
  expect(stats('f16')).toContain('x 4 x 2 bytes');
  expect(stats('q8')).toContain('x (4 + 4) bytes');
});
