import {
  checkBoolean,
  checkInteger,
  checkName,
  checkNames,
  checkSignal,
  refuse,
} from './checks.js';
import { checkDownloadOptions, downloadOptionNames } from './download-options.js';
import { promptIds } from './prompt.js';
import type { CacheOptions, GenerateRequest } from './protocol.js';
import { samplingRequest } from './sampling-options.js';
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
  'stop',
  'stopTokens',
  'echo',
  'n',
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

const mostChoices = 128;

// The largest that WebAssembly takes as an int.
const largestInt = 2 ** 31 - 1;

const variants = { simd: true, 'relaxed-simd': true } satisfies Record<Variant, true>;

const overflows = { stop: true, shift: true, error: true } satisfies Record<Overflow, true>;

/** What a request has to fit. */
export interface RequestLimits {
  readonly info: Pick<EngineInfo, 'config' | 'contextLength' | 'defaults' | 'endOfText'>;
  /** Sessions may go on without a prompt, and have one cache strategy, and one completion. */
  readonly inSession: boolean;
}

/**
 * Checks a prompt and its options, and fills in the defaults.
 * @throws InvalidArgumentError
 */
export function generateRequest(
  prompt: Prompt,
  options: GenerateOptions,
  { info, inSession }: RequestLimits,
): GenerateRequest {
  checkNames('generate', options, generateOptionNames);
  checkSignal(options.signal);
  const { contextLength, defaults, endOfText } = info;
  const { vocabSize } = info.config;
  const { maxTokens = defaults.maxTokens, allowSpecial = false, echo = false, n = 1 } = options;
  const { cache = 'block', overflow = 'stop', nKeep = 0, reusePrefix = true } = options;
  const endIds = endOfText === undefined ? [] : [endOfText];
  const { logprobs, stop = [], stopTokens = defaults.stopTokens ?? endIds } = options;
  if (maxTokens !== undefined) checkInteger('maxTokens', maxTokens, 0, Number.MAX_SAFE_INTEGER);
  if (logprobs !== undefined) checkInteger('logprobs', logprobs, 0, Number.MAX_SAFE_INTEGER);
  checkBoolean('allowSpecial', allowSpecial);
  checkBoolean('echo', echo);
  checkName('cache', cache, wasmCacheStrategies);
  if (inSession && cache !== 'block') refuse('cache', cache, "'block' in a session");
  checkInteger('n', n, 1, mostChoices);
  if (n > 1 && inSession) refuse('n', n, '1 in a session');
  if (n > 1 && cache !== 'block') refuse('n', n, `1 with the cache '${cache}'`);
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
    ...samplingRequest(options, defaults, vocabSize),
    logprobs,
    stop: checkStop(stop),
    stopTokens: checkStopTokens(stopTokens),
    echo,
    n,
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

function checkStop(stop: unknown): string[] {
  const texts: readonly unknown[] = Array.isArray(stop) ? stop : [stop];
  return texts.map((text, index) => {
    const name = Array.isArray(stop) ? `stop[${index}]` : 'stop';
    if (typeof text !== 'string' || text === '') refuse(name, text, 'a text that is not empty');
    // Generated text has no such halves.
    if (/\p{Surrogate}/u.test(text)) refuse(name, text, 'a text without lone surrogates');
    return text;
  });
}
