import type { InvalidArgumentError } from '../errors.js';
import type { CacheStrategy, GenerateOptions, LoadOptions, Overflow } from '../types.js';
import { type CacheCommand, parseCache } from './cache-usage.js';
import { downloadFlags, downloadHelp, downloadOptions, hubHelp } from './download-flags.js';
import { engineFlags, engineHelp, engineOptions } from './engine-flags.js';
import { parseFlags } from './flags.js';
import { parseServe, type ServeCommand } from './serve-usage.js';
import { parseNumber, UsageError } from './usage-error.js';

export const helpText = `kvasm: GPT-2 on this machine

Usage:
  kvasm generate --prompt TEXT [options]
  kvasm serve [options]     OpenAI's HTTP API; see kvasm serve --help
  kvasm cache ls|rm         downloads that were kept; see kvasm cache --help

Options of generate:
  --model WHERE       a Hugging Face id such as openai-community/gpt2 or owner/name@revision; a directory or
                      URL with config.json, tokenizer.json (or vocab.json and merges.txt) and
                      model.safetensors (or its shards), or of such weights;
                      default: the model that comes with kvasm
${downloadHelp}\
  --prompt TEXT       the text to continue; - reads it from standard input
  --max-tokens N      tokens to generate at the most; default: as many as fit
  --temperature X     0 is greedy
  --top-k N           sample among the N likeliest tokens; 0 is off
  --top-p X           sample among the likeliest tokens with a sum of X; 1 is off
  --min-p X           sample among tokens at least X times as likely as the likeliest; 0 is off
                      these four: as the model's generation_config.json says, or temperature 0.8 and top-p 0.95
  --repetition-penalty X, --frequency-penalty X, --presence-penalty X
                      make tokens that are there already less likely; 1, 0 and 0 are off
  --stop TEXT         end before this text; may be given several times
  --echo              print the prompt, too
  --seed N            the same seed gives the same text; default: random
  --cache STRATEGY    block (default), concat or none: how keys and values are kept
${engineHelp}\
  --kv-bytes N        memory for keys and values; default: what the whole context needs
  --overflow WHAT     when the context is full: stop (default), shift (forget the middle) or error
  --n-keep N          first tokens that shift keeps; default 0
  --ignore-eos        go on after the end-of-text token
  --stats             times, tokens per second and memory, to standard error
  --help, --version

${hubHelp}\
Writes the text to standard output. Exit status: 0, 1 for an error, 2 for wrong usage, 130 after Ctrl-C.
`;

export interface GenerateCommand {
  readonly model: string | undefined;
  /** `-` is standard input. */
  readonly prompt: string;
  readonly load: LoadOptions;
  readonly options: GenerateOptions;
  readonly stats: boolean;
}

export type Command =
  | { readonly name: 'help' }
  | { readonly name: 'version' }
  | { readonly name: 'generate'; readonly generate: GenerateCommand }
  | { readonly name: 'serve-help' }
  | { readonly name: 'serve'; readonly serve: ServeCommand }
  | { readonly name: 'cache-help' }
  | { readonly name: 'cache'; readonly cache: CacheCommand };

const flags = {
  model: { type: 'string' },
  ...downloadFlags,
  prompt: { type: 'string' },
  'max-tokens': { type: 'string' },
  temperature: { type: 'string' },
  'top-k': { type: 'string' },
  'top-p': { type: 'string' },
  'min-p': { type: 'string' },
  'repetition-penalty': { type: 'string' },
  'frequency-penalty': { type: 'string' },
  'presence-penalty': { type: 'string' },
  stop: { type: 'string', multiple: true },
  echo: { type: 'boolean' },
  seed: { type: 'string' },
  cache: { type: 'string' },
  ...engineFlags,
  overflow: { type: 'string' },
  'n-keep': { type: 'string' },
  'ignore-eos': { type: 'boolean' },
  stats: { type: 'boolean' },
  help: { type: 'boolean', short: 'h' },
  version: { type: 'boolean' },
} as const;

/** @throws UsageError */
export function parseCommand(args: readonly string[]): Command {
  if (args[0] === 'serve') {
    const serve = parseServe(args.slice(1));
    return serve === 'help' ? { name: 'serve-help' } : { name: 'serve', serve };
  }
  if (args[0] === 'cache') {
    const cache = parseCache(args.slice(1));
    return cache === 'help' ? { name: 'cache-help' } : { name: 'cache', cache };
  }
  const { values, positionals } = parseFlags(args, flags);
  if (values.help) return { name: 'help' };
  if (values.version) return { name: 'version' };
  const [name, ...rest] = positionals;
  if (name === undefined) throw new UsageError('no command; there are: generate, serve, cache');
  if (name !== 'generate')
    throw new UsageError(`no command ${JSON.stringify(name)}; there are: generate, serve, cache`);
  if (rest.length > 0)
    throw new UsageError(`what is ${JSON.stringify(rest[0])}? Quote the prompt.`);
  if (values.prompt === undefined) throw new UsageError('--prompt is missing');
  const options: GenerateOptions = {};
  const numbers = [
    ['maxTokens', 'max-tokens'],
    ['temperature', 'temperature'],
    ['topK', 'top-k'],
    ['topP', 'top-p'],
    ['minP', 'min-p'],
    ['repetitionPenalty', 'repetition-penalty'],
    ['frequencyPenalty', 'frequency-penalty'],
    ['presencePenalty', 'presence-penalty'],
    ['seed', 'seed'],
    ['nKeep', 'n-keep'],
  ] as const;
  for (const [option, flag] of numbers) {
    const text = values[flag];
    if (text !== undefined) options[option] = parseNumber(flag, text);
  }
  const load = { ...downloadOptions(values), ...engineOptions(values) };
  if (values.cache !== undefined) options.cache = values.cache as CacheStrategy;
  if (values.overflow !== undefined) options.overflow = values.overflow as Overflow;
  if (values['ignore-eos']) options.stopTokens = [];
  if (values.stop !== undefined) options.stop = values.stop;
  if (values.echo) options.echo = true;
  const { model, prompt, stats = false } = values;
  return { name: 'generate', generate: { model, prompt, load, options, stats } };
}

/** The message of an error, with options by the names that they have here. */
export function messageInFlags(error: InvalidArgumentError): string {
  const names =
    /^(maxTokens|topK|topP|minP|temperature|(?:repetition|frequency|presence)Penalty|stop|seed|cache|window|dtype|kvDtype|kvBytes|overflow|nKeep|file|storage)\b/;
  return error.message.replace(names, name => {
    return `--${name.replace(/[A-Z]/g, letter => `-${letter.toLowerCase()}`)}`;
  });
}
