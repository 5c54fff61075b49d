import { once } from 'node:events';

import type { GenerateChunk, GenerateOptions, GenerationDefaults } from '../types.js';
import { bundledModel } from './bundled-model.js';
import { loadEngine } from './load-engine.js';
import { formatStats } from './stats.js';
import type { GenerateCommand } from './usage.js';

/**
 * Loads a model and streams one generation to standard output.
 * @throws UsageError, KvasmError, the signal's reason
 */
export async function generate(command: GenerateCommand, signal: AbortSignal): Promise<void> {
  const model = command.model ?? bundledModel();
  const prompt = command.prompt === '-' ? await readInput(signal) : command.prompt;
  const engine = await loadEngine(model, command.load, signal);
  try {
    const generation = engine.generate(prompt, {
      ...readable(engine.info.defaults),
      ...command.options,
      signal,
    });
    await print(generation);
    const result = await generation.result();
    if (command.stats) process.stderr.write(formatStats(engine.info, result));
  } finally {
    await engine.dispose();
  }
}

/**
 * How to draw text that a person is to read, where the model does not say it: from the plain distribution of a small one
 * it wanders.
 */
export function readable({ temperature, topK, topP, minP }: GenerationDefaults): GenerateOptions {
  const says = [temperature, topK, topP, minP].some(value => value !== undefined);
  return says ? {} : { temperature: 0.8, topP: 0.95 };
}

async function readInput(signal: AbortSignal): Promise<string> {
  const abort = () => process.stdin.destroy();
  signal.addEventListener('abort', abort);
  let text = '';
  process.stdin.setEncoding('utf8');
  try {
    for await (const chunk of process.stdin) text += chunk;
  } catch (error) {
    if (!signal.aborted) throw error;
  }
  signal.throwIfAborted();
  return text;
}

/** Ends with a line feed, so that what comes next on a terminal, be it an error, has a line of its own. */
async function print(chunks: AsyncIterable<GenerateChunk>): Promise<void> {
  let last = '\n';
  try {
    for await (const { text } of chunks) {
      await write(text);
      if (text !== '') last = text;
    }
  } finally {
    if (!last.endsWith('\n')) await write('\n');
  }
}

async function write(text: string): Promise<void> {
  if (!process.stdout.write(text)) await once(process.stdout, 'drain');
}
