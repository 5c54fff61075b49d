#!/usr/bin/env node
import { readFileSync } from 'node:fs';

import { InvalidArgumentError, KvasmError } from '../errors.js';
import { cache } from './cache.js';
import { cacheHelpText } from './cache-usage.js';
import { generate } from './generate.js';
import { serve } from './serve.js';
import { serveHelpText } from './serve-usage.js';
import { helpText, messageInFlags, parseCommand } from './usage.js';
import { UsageError } from './usage-error.js';

const exitCode = { error: 1, usage: 2, interrupted: 130 };

const interruption = new AbortController();
process.once('SIGINT', () => {
  interruption.abort();
  // Whoever presses it again does not want to wait.
  process.once('SIGINT', () => process.exit(exitCode.interrupted));
});

// The reader has gone, as `| head` does, and wants no more.
process.stdout.on('error', error => {
  if ('code' in error && error.code === 'EPIPE') process.exit(0);
  throw error;
});

try {
  await run(process.argv.slice(2));
} catch (error) {
  process.exitCode = report(error);
}

async function run(args: string[]): Promise<void> {
  const command = parseCommand(args);
  switch (command.name) {
    case 'help':
      process.stdout.write(helpText);
      break;
    case 'version':
      process.stdout.write(`${packageVersion()}\n`);
      break;
    case 'generate':
      await generate(command.generate, interruption.signal);
      break;
    case 'cache-help':
      process.stdout.write(cacheHelpText);
      break;
    case 'cache':
      process.stdout.write(await cache(command.cache));
      break;
    case 'serve-help':
      process.stdout.write(serveHelpText);
      break;
    case 'serve':
      process.once('SIGTERM', () => interruption.abort());
      await serve(command.serve, interruption.signal);
      break;
  }
}

function report(error: unknown): number {
  if (interruption.signal.aborted) return exitCode.interrupted;
  if (error instanceof UsageError) return complain(`${error.message} (see kvasm --help)`, 'usage');
  if (error instanceof InvalidArgumentError) return complain(messageInFlags(error), 'usage');
  if (error instanceof KvasmError) return complain(error.message, 'error');
  // Not foreseen: whoever is to repair it needs to know where it came from.
  return complain(error instanceof Error ? (error.stack ?? error.message) : String(error), 'error');
}

function complain(message: string, code: 'error' | 'usage'): number {
  process.stderr.write(`kvasm: ${message.replace(/\s*\n\s*/g, ' ')}\n`);
  return exitCode[code];
}

function packageVersion(): string {
  const file = new URL('../../package.json', import.meta.url);
  const { version } = JSON.parse(readFileSync(file, 'utf8')) as { version: string };
  return version;
}
