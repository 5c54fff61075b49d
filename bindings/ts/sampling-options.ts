import { checkInteger, refuse } from './checks.js';
import { describe } from './describe.js';
import { InvalidArgumentError } from './errors.js';
import type { SamplingRequest } from './protocol.js';
import type { GenerateOptions, GenerationDefaults } from './types.js';

/**
 * Checks the options that say how tokens are drawn, and fills in the defaults.
 * @throws InvalidArgumentError
 */
export function samplingRequest(
  options: GenerateOptions,
  defaults: GenerationDefaults,
  vocabSize: number,
): SamplingRequest {
  const { temperature = defaults.temperature ?? 1, topK = defaults.topK ?? 0 } = options;
  const { topP = defaults.topP ?? 1, minP = defaults.minP ?? 0 } = options;
  const { repetitionPenalty = defaults.repetitionPenalty ?? 1, frequencyPenalty = 0 } = options;
  const { presencePenalty = 0, logitBias = {}, seed = randomSeed() } = options;
  if (!(isFloat(temperature) && temperature >= 0)) {
    refuse('temperature', temperature, 'a finite number of at least 0');
  }
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
  return {
    temperature,
    topK: Math.min(topK, vocabSize),
    topP,
    minP,
    repetitionPenalty,
    frequencyPenalty,
    presencePenalty,
    logitBias: checkLogitBias(logitBias, vocabSize),
    seed,
  };
}

/** Whether a value is a number that is finite as a 32-bit float, too. */
export function isFloat(value: unknown): value is number {
  return typeof value === 'number' && Number.isFinite(Math.fround(value));
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

function randomSeed(): number {
  const [high = 0, low = 0] = crypto.getRandomValues(new Uint32Array(2));
  return (high & 0x1f_ffff) * 2 ** 32 + low;
}
