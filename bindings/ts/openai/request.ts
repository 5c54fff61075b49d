/** Reads the parameters that several kinds of request have, and refuses what cannot be done. */

import { describe } from '../describe.js';
import { InvalidArgumentError } from '../errors.js';
import type { GenerateOptions, Prompt } from '../types.js';
import { OpenAIRequestError } from './errors.js';

/** The parameters that are options of `generate` under another name. */
const optionNames = {
  temperature: 'temperature',
  top_p: 'topP',
  top_k: 'topK',
  min_p: 'minP',
  frequency_penalty: 'frequencyPenalty',
  presence_penalty: 'presencePenalty',
  repetition_penalty: 'repetitionPenalty',
  logit_bias: 'logitBias',
  n: 'n',
  seed: 'seed',
} as const satisfies Record<string, keyof GenerateOptions>;

/** What requests for a continuation have in common. */
export const generationParameters = [
  'stream',
  'stream_options',
  'stop',
  ...Object.keys(optionNames),
] as const;

/** They say who asks or how to account for it, and change nothing about the answer. */
const withoutEffect = ['user', 'safety_identifier', 'prompt_cache_key', 'metadata'] as const;

/** What a request with any of these asks for cannot be done, unless the value is the one that asks for nothing. */
const neutralValues: Readonly<Record<string, (value: unknown) => boolean>> = {
  suffix: value => value === '',
  best_of: value => value === 1,
  tools: isEmptyArray,
  functions: isEmptyArray,
  tool_choice: value => value === 'none' || value === 'auto',
  function_call: value => value === 'none' || value === 'auto',
  parallel_tool_calls: value => typeof value === 'boolean',
  response_format: value => isObject(value) && value.type === 'text',
  modalities: value => Array.isArray(value) && value.length === 1 && value[0] === 'text',
  store: value => value === false,
  service_tier: value => value === 'auto' || value === 'default',
  audio: () => false,
  prediction: () => false,
  reasoning_effort: value => value === 'none',
  verbosity: () => false,
  web_search_options: () => false,
};

/** A request's parameters; null ones are left out. */
export type Params = Readonly<Record<string, unknown>>;

/** What is common to requests for a continuation, checked. */
export interface CommonRequest {
  readonly n: number;
  readonly stream: boolean;
  readonly includeUsage: boolean;
  readonly options: GenerateOptions;
}

/** @throws OpenAIRequestError when the body is no object, or has parameters that are neither `known` nor common to all. */
export function readParams(body: unknown, known: readonly string[], model: string): Params {
  if (!isObject(body)) {
    throw new OpenAIRequestError(`The request must be an object, not ${describe(body)}.`, null);
  }
  const params = Object.fromEntries(Object.entries(body).filter(([, value]) => value != null));
  for (const [name, value] of Object.entries(params)) {
    if (['model', ...known, ...withoutEffect].includes(name)) continue;
    const isNeutral = Object.hasOwn(neutralValues, name) ? neutralValues[name] : undefined;
    if (isNeutral?.(value)) continue;
    if (isNeutral) {
      const message = `kvasm cannot do what ${name} asks for: ${describe(value)}.`;
      throw new OpenAIRequestError(message, name, 'unsupported_parameter');
    }
    const message = `There is no parameter ${describe(name)}.`;
    throw new OpenAIRequestError(message, name, 'unknown_parameter');
  }
  if (params.model !== undefined && params.model !== model) {
    const message = `There is no model ${describe(params.model)}; the one there is: ${describe(model)}.`;
    throw new OpenAIRequestError(message, 'model', 'model_not_found');
  }
  return params;
}

/**
 * @param own The options that each kind of request reads in its own way.
 * @throws OpenAIRequestError
 */
export function readCommon(params: Params, own: GenerateOptions): CommonRequest {
  const stream = readBoolean(params, 'stream');
  const streamOptions = params.stream_options ?? {};
  if (!isObject(streamOptions)) refuse('stream_options', streamOptions, 'an object');
  if (!stream && params.stream_options !== undefined) {
    throw new OpenAIRequestError('stream_options needs stream: true.', 'stream_options');
  }
  for (const name of Object.keys(streamOptions)) {
    if (name === 'include_usage') continue;
    const message = `There is no parameter "stream_options.${name}".`;
    throw new OpenAIRequestError(message, `stream_options.${name}`, 'unknown_parameter');
  }
  const options: Record<string, unknown> = { ...own };
  for (const [name, option] of Object.entries(optionNames)) {
    // What they may be, the engine knows.
    if (params[name] !== undefined) options[option] = params[name];
  }
  return {
    n: readInteger(params, 'n', 1, 128) ?? 1,
    stream,
    includeUsage: readBoolean(streamOptions, 'include_usage'),
    options,
  };
}

/** A text, ids, or several of either. @throws OpenAIRequestError */
export function readPrompts(name: string, value: unknown): Prompt[] {
  if (typeof value === 'string') return [value];
  if (!Array.isArray(value)) refuse(name, value, 'a string or an array');
  if (value.length === 0) throw new OpenAIRequestError(`${name} is an empty array.`, name);
  if (value.every(element => typeof element === 'number')) return [value];
  for (const [index, element] of value.entries()) {
    if (typeof element === 'string' || Array.isArray(element)) continue;
    const message = `${name}[${index}] must be a string or an array of ids, not ${describe(element)}.`;
    throw new OpenAIRequestError(message, name);
  }
  return value;
}

/** The texts of `stop`. @throws OpenAIRequestError */
export function readStop({ stop = [] }: Params): string[] {
  const texts = Array.isArray(stop) ? stop : [stop];
  for (const text of texts) {
    if (typeof text !== 'string' || text === '')
      refuse('stop', text, 'a text, or an array of texts');
  }
  return texts;
}

/** An error of the engine, with options by the names that they have here. */
export function inRequestTerms(error: unknown): unknown {
  if (!(error instanceof InvalidArgumentError) || error instanceof OpenAIRequestError) return error;
  for (const [name, option] of Object.entries(optionNames)) {
    if (!new RegExp(`^${option}\\b`).test(error.message)) continue;
    const message = error.message.replace(option, name);
    return new OpenAIRequestError(message, name, 'invalid_value', { cause: error });
  }
  return error;
}

/** @throws OpenAIRequestError */
export function readInteger(
  params: Params,
  name: string,
  least: number,
  most: number,
): number | undefined {
  const value = params[name];
  if (value === undefined) return undefined;
  if (Number.isSafeInteger(value) && Number(value) >= least && Number(value) <= most) {
    return Number(value);
  }
  const range = most >= 2 ** 52 ? `of at least ${least}` : `from ${least} to ${most}`;
  return refuse(name, value, `an integer ${range}`);
}

/** @throws OpenAIRequestError */
export function readBoolean(params: Params, name: string): boolean {
  const value = params[name] ?? false;
  return typeof value === 'boolean' ? value : refuse(name, value, 'true or false');
}

/** @throws OpenAIRequestError */
export function refuse(name: string, value: unknown, wanted: string): never {
  throw new OpenAIRequestError(`${name} must be ${wanted}, not ${describe(value)}.`, name);
}

export function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function isEmptyArray(value: unknown): boolean {
  return Array.isArray(value) && value.length === 0;
}
