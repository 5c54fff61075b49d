import { checkInteger, refuse } from './checks.js';
import { closestName, describe } from './describe.js';
import { checkDownloadOptions, downloadOptionNames } from './download-options.js';
import { InvalidArgumentError } from './errors.js';
import { promptIds } from './prompt.js';
import type { CacheOptions, GenerateRequest } from './protocol.js';
import type {
  EngineInfo,
  GenerateOptions,
  LoadOptions,
  Overflow,
  Prompt,
  Variant,
} from './types.js';
import { wasmCacheStrategies, wasmKvDtypes, wasmWeightDtypes } from './wasm-module.js';

const generateOptionNames = [
  'maxTokens',
  'temperature',
  'topK',
  'topP',
  'minP',
  'repetitionPenalty',
  'frequencyPenalty',
  'presencePenalty',
  'logitBias',
  'seed',
  'logprobs',
  'stopTokens',
  'allowSpecial',
  'cache',
  'overflow',
  'nKeep',
  'reusePrefix',
  'signal',
] as const satisfies readonly (keyof GenerateOptions)[];

const loadOptionNames = [
  'signal',
  'onProgress',
  'dtype',
  'contextLength',
  'window',
  'kvDtype',
  'kvBytes',
  'prefixCache',
  'prefillChunk',
  'threads',
  'variant',
  ...downloadOptionNames,
  'wasmUrl',
  'workerUrl',
] as const satisfies readonly (keyof LoadOptions)[];

// The largest that WebAssembly takes as an int.
const largestInt = 2 ** 31 - 1;

const variants = { simd: true, 'relaxed-simd': true } satisfies Record<Variant, true>;

const overflows = { stop: true, shift: true, error: true } satisfies Record<Overflow, true>;

/** What a request has to fit. */
export interface RequestLimits extends Pick<EngineInfo, 'contextLength'> {
  readonly vocabSize: number;
  /** Sessions may go on without a prompt, and have one cache strategy. */
  readonly inSession: boolean;
}

/**
 * Checks a prompt and its options, and fills in the defaults.
 * @throws InvalidArgumentError
 */
export function generateRequest(
  prompt: Prompt,
  options: GenerateOptions,
  { vocabSize, contextLength, inSession }: RequestLimits,
): GenerateRequest {
  checkNames('generate', options, generateOptionNames);
  checkSignal(options.signal);
  const { maxTokens, temperature = 1, topK = 0, topP = 1, logprobs, stopTokens } = options;
  const { seed = randomSeed(), cache = 'block', allowSpecial = false } = options;
  const { overflow = 'stop', nKeep = 0, reusePrefix = true } = options;
  if (maxTokens !== undefined) checkInteger('maxTokens', maxTokens, 0, Number.MAX_SAFE_INTEGER);
  if (!(isFloat(temperature) && temperature >= 0)) {
    refuse('temperature', temperature, 'a finite number of at least 0');
  }
  const { minP = 0, repetitionPenalty = 1, frequencyPenalty = 0 } = options;
  const { presencePenalty = 0, logitBias = {} } = options;
  checkInteger('topK', topK, 0, Number.MAX_SAFE_INTEGER);
  if (!(isFloat(topP) && Math.fround(topP) > 0 && topP <= 1)) {
    refuse('topP', topP, 'a number above 0 and up to 1');
  }
  if (!(isFloat(minP) && minP >= 0 && minP <= 1)) refuse('minP', minP, 'a number from 0 to 1');
  if (!(isFloat(repetitionPenalty) && Math.fround(repetitionPenalty) > 0)) {
    refuse('repetitionPenalty', repetitionPenalty, 'a finite number above 0');
  }
  for (const [name, value] of Object.entries({ frequencyPenalty, presencePenalty })) {
    if (!isFloat(value)) refuse(name, value, 'a finite number');
  }
  checkInteger('seed', seed, 0, Number.MAX_SAFE_INTEGER, '2^53 - 1');
  if (logprobs !== undefined) checkInteger('logprobs', logprobs, 0, Number.MAX_SAFE_INTEGER);
  checkBoolean('allowSpecial', allowSpecial);
  checkName('cache', cache, wasmCacheStrategies);
  if (inSession && cache !== 'block') refuse('cache', cache, "'block' in a session");
  checkName('overflow', overflow, overflows);
  checkInteger('nKeep', nKeep, 0, Number.MAX_SAFE_INTEGER);
  const mostKept = Math.max(Math.floor(contextLength / 2), 1) - 1;
  if (overflow === 'shift' && nKeep > mostKept) {
    refuse('nKeep', nKeep, `less than half the context of ${contextLength} tokens`);
  }
  checkBoolean('reusePrefix', reusePrefix);
  return {
    prompt: promptIds(prompt, vocabSize, inSession),
    allowSpecial,
    maxTokens,
    temperature,
    topK: Math.min(topK, vocabSize),
    topP,
    minP,
    repetitionPenalty,
    frequencyPenalty,
    presencePenalty,
    logitBias: checkLogitBias(logitBias, vocabSize),
    seed,
    logprobs,
    stopTokens: stopTokens === undefined ? undefined : checkStopTokens(stopTokens),
    cache,
    overflow,
    nKeep,
    reusePrefix,
  };
}

/**
 * Checks all options of a load, and fills in the defaults of those for the cache.
 * @throws InvalidArgumentError
 */
export function checkLoadOptions(options: LoadOptions): CacheOptions {
  checkNames('load', options, loadOptionNames);
  checkSignal(options.signal);
  const { onProgress, contextLength } = options;
  if (onProgress !== undefined && typeof onProgress !== 'function') {
    refuse('onProgress', onProgress, 'a function');
  }
  const { dtype = 'q8', window, kvDtype = 'f32', kvBytes } = options;
  const { prefixCache = true, prefillChunk = 64 } = options;
  checkName('dtype', dtype, wasmWeightDtypes);
  if (contextLength !== undefined) checkInteger('contextLength', contextLength, 1, largestInt);
  if (window !== undefined) checkInteger('window', window, 1, largestInt);
  checkName('kvDtype', kvDtype, wasmKvDtypes);
  // What a 32-bit memory can count.
  if (kvBytes !== undefined) checkInteger('kvBytes', kvBytes, 1, 2 ** 32 - 1, '2^32 - 1');
  checkBoolean('prefixCache', prefixCache);
  checkInteger('prefillChunk', prefillChunk, 1, largestInt);
  const { threads, variant } = options;
  if (threads !== undefined && threads !== 'auto') {
    // What a page can start at once is limited, too.
    checkInteger('threads', threads, 1, 128, "128, or 'auto'");
  }
  if (variant !== undefined) checkName('variant', variant, variants);
  checkDownloadOptions(options);
  for (const name of ['wasmUrl', 'workerUrl'] as const) {
    const url: unknown = options[name];
    if (url !== undefined && typeof url !== 'string' && !(url instanceof URL)) {
      refuse(name, url, 'a URL');
    }
  }
  return { dtype, contextLength, window, kvDtype, kvBytes, prefixCache, prefillChunk };
}

export function checkNames(method: string, options: unknown, names: readonly string[]): void {
  if (typeof options !== 'object' || options === null || Array.isArray(options)) {
    throw new InvalidArgumentError(
      `The options of ${method} must be an object, not ${describe(options)}.`,
    );
  }
  for (const name of Object.keys(options)) {
    if (!names.includes(name)) {
      throw new InvalidArgumentError(
        `${method} has no option ${describe(name)}; the closest is "${closestName(name, names)}", ` +
          `of: ${names.join(', ')}.`,
      );
    }
  }
}

export function checkBoolean(name: string, value: unknown): void {
  if (typeof value !== 'boolean') refuse(name, value, 'true or false');
}

function checkName(option: string, value: unknown, names: object): void {
  if (typeof value === 'string' && Object.hasOwn(names, value)) return;
  const quoted = Object.keys(names).map(name => `'${name}'`);
  refuse(option, value, quoted.join(' or '));
}

function checkStopTokens(ids: unknown): number[] {
  if (!Array.isArray(ids) && !ArrayBuffer.isView(ids)) {
    refuse('stopTokens', ids, 'an array of token ids');
  }
  // A view may be a DataView, which has no elements and so names no ids.
  return Array.from(ids as ArrayLike<unknown>, (id, index) => {
    checkInteger(`stopTokens[${index}]`, id, 0, largestInt);
    return Number(id);
  });
}

function checkLogitBias(biases: unknown, vocabSize: number): [number, number][] {
  if (typeof biases !== 'object' || biases === null || Array.isArray(biases)) {
    refuse('logitBias', biases, 'an object of numbers by token id');
  }
  return Object.entries(biases).map(([key, bias]: [string, unknown]) => {
    const token = /^\d+$/.test(key) ? Number(key) : Number.NaN;
    if (!(token < vocabSize)) {
      throw new InvalidArgumentError(
        `logitBias must be by token ids from 0 to ${vocabSize - 1}, not ${describe(key)}.`,
      );
    }
    if (bias !== -Infinity && !isFloat(bias)) {
      refuse(`logitBias[${key}]`, bias, 'a finite number, or -Infinity');
    }
    return [token, Number(bias)];
  });
}

/** Whether a value is a number that is finite as a 32-bit float, too. */
function isFloat(value: unknown): value is number {
  return typeof value === 'number' && Number.isFinite(Math.fround(value));
}

function checkSignal(signal: unknown): void {
  // By shape, as a signal from another realm is no instance of this realm's class.
  const usable =
    typeof signal === 'object' &&
    signal !== null &&
    'aborted' in signal &&
    'addEventListener' in signal;
  if (signal !== undefined && !usable) refuse('signal', signal, 'an AbortSignal');
}

function randomSeed(): number {
  const [high = 0, low = 0] = crypto.getRandomValues(new Uint32Array(2));
  return (high & 0x1f_ffff) * 2 ** 32 + low;
}
