import type { LoadOptions } from '../types.js';
import { downloadFlags, downloadHelp, downloadOptions, hubHelp } from './download-flags.js';
import { engineFlags, engineHelp, engineOptions } from './engine-flags.js';
import { parseFlags } from './flags.js';
import { parseNumber, UsageError } from './usage-error.js';

export const serveHelpText = `kvasm serve: GPT-2 behind OpenAI's HTTP API, on this machine

Usage:
  kvasm serve [options]

Options:
  --model WHERE       as of kvasm generate
${downloadHelp}\
  --name NAME         what the model is called in requests; default: the last part of WHERE
  --host ADDRESS      where to listen; default 127.0.0.1, which other machines cannot reach
  --port N            default 8080; 0 takes any that is free
  --cors ORIGIN       lets pages of this origin use the server, such as http://localhost:3000; may be repeated
  --allow-host NAME   lets the server be called by this name, beside localhost and addresses; may be repeated
  --max-body BYTES    the largest request; default 1000000
${engineHelp}\
  --kv-bytes N        memory for keys and values; default: what one whole context needs. More lets more requests run
                      at once
  --help

Answers GET /v1/models, POST /v1/completions and POST /v1/chat/completions, with "stream": true as server-sent
events, and POST /v1/embeddings. There is no key: whoever can reach the port can use it. Ctrl-C ends it.
${hubHelp}`;

export interface ServeCommand {
  readonly model: string | undefined;
  readonly name: string | undefined;
  readonly host: string;
  readonly port: number;
  readonly maxBody: number;
  readonly allowedHosts: readonly string[];
  readonly allowedOrigins: readonly string[];
  readonly load: LoadOptions;
}

const flags = {
  model: { type: 'string' },
  ...downloadFlags,
  name: { type: 'string' },
  host: { type: 'string' },
  port: { type: 'string' },
  cors: { type: 'string', multiple: true },
  'allow-host': { type: 'string', multiple: true },
  'max-body': { type: 'string' },
  ...engineFlags,
  help: { type: 'boolean', short: 'h' },
} as const;

/** @throws UsageError */
export function parseServe(args: readonly string[]): ServeCommand | 'help' {
  const { values, positionals } = parseFlags(args, flags);
  if (values.help) return 'help';
  if (positionals.length > 0) throw new UsageError(`what is ${JSON.stringify(positionals[0])}?`);
  const load = { ...downloadOptions(values), ...engineOptions(values) };
  return {
    model: values.model,
    name: values.name,
    host: values.host ?? '127.0.0.1',
    port: parseInteger('port', values.port ?? '8080', 65_535),
    maxBody: parseInteger('max-body', values['max-body'] ?? '1000000', 2 ** 31),
    allowedHosts: (values['allow-host'] ?? []).map(name => name.toLowerCase()),
    allowedOrigins: (values.cors ?? []).map(parseOrigin),
    load,
  };
}

function parseInteger(flag: string, text: string, most: number): number {
  const number = parseNumber(flag, text);
  if (Number.isInteger(number) && number >= 0 && number <= most) return number;
  throw new UsageError(
    `--${flag} must be an integer from 0 to ${most}, not ${JSON.stringify(text)}`,
  );
}

function parseOrigin(text: string): string {
  const origin = URL.canParse(text) ? new URL(text).origin : 'null';
  if (origin !== 'null' && new URL(text).pathname === '/') return origin;
  const example = 'such as http://localhost:3000';
  throw new UsageError(`--cors must be an origin, ${example}, not ${JSON.stringify(text)}`);
}
