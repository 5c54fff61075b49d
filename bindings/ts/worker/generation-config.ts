import { describe } from '../describe.js';
import { errorFor } from '../errors.js';
import { isFloat } from '../sampling-options.js';
import type { GenerationDefaults } from '../types.js';

type Config = Readonly<Record<string, unknown>>;

/**
 * Reads what a model's generation_config.json, as Hugging Face transformers writes it, says about options of `generate`:
 * `do_sample: false` is greedy; null is as if not there; what kvasm has no option for is left alone.
 * @param label Where the file is, for messages.
 * @throws ModelError `invalid-config`
 */
export function readGenerationConfig(config: Config, label: string): GenerationDefaults {
  const read = <T>(name: string, isValid: (value: unknown) => boolean, wanted: string) => {
    const value = config[name] ?? undefined;
    if (value === undefined || isValid(value)) return value as T | undefined;
    const message = `${label}: ${name} must be ${wanted}, not ${describe(value)}.`;
    throw errorFor('invalid-config', message);
  };
  const number = (name: string, isValid: (value: number) => boolean, wanted: string) =>
    read<number>(name, value => isFloat(value) && isValid(value), wanted);
  const doSample = read<boolean>('do_sample', value => typeof value === 'boolean', 'true or false');
  const temperature = number('temperature', value => value >= 0, 'a number of at least 0');
  const ids = read<number | number[]>('eos_token_id', isIdOrIds, 'a token id, or an array of them');
  return withoutUndefined({
    temperature: doSample === false ? 0 : temperature,
    topK: number('top_k', isNatural, 'an integer of at least 0'),
    topP: number('top_p', value => value > 0 && value <= 1, 'a number above 0 and up to 1'),
    minP: number('min_p', value => value >= 0 && value <= 1, 'a number from 0 to 1'),
    repetitionPenalty: number('repetition_penalty', value => value > 0, 'a number above 0'),
    maxTokens: number('max_new_tokens', isNatural, 'an integer of at least 0'),
    stopTokens: ids === undefined ? undefined : [ids].flat(),
  });
}

function isNatural(value: unknown): value is number {
  return Number.isSafeInteger(value) && Number(value) >= 0;
}

function isIdOrIds(value: unknown): boolean {
  return Array.isArray(value) ? value.every(isNatural) : isNatural(value);
}

function withoutUndefined<T extends object>(values: T): { [Key in keyof T]?: NonNullable<T[Key]> } {
  const defined = Object.entries(values).filter(([, value]) => value !== undefined);
  return Object.fromEntries(defined) as { [Key in keyof T]?: NonNullable<T[Key]> };
}
