/** Checks the arguments of what an engine computes about a text. All throw InvalidArgumentError. */

import { checkBoolean, checkName, checkNames, checkSignal } from './checks.js';
import type { ComputeOptions, EmbedOptions, LogitsOptions, Pooling } from './compute-types.js';
import { promptIds } from './prompt.js';
import type { Calls, PromptRequest } from './protocol.js';
import type { EngineInfo, Prompt } from './types.js';

const poolings = { mean: true, last: true } satisfies Record<Pooling, true>;

export function logitsRequest(
  prompt: Prompt,
  options: LogitsOptions,
  info: EngineInfo,
): Calls['logits']['request'] {
  const request = promptRequest('logits', prompt, options, ['all'], info);
  const { all = false } = options;
  checkBoolean('all', all);
  return { ...request, all };
}

export function embedRequest(
  prompt: Prompt,
  options: EmbedOptions,
  info: EngineInfo,
): Calls['embed']['request'] {
  const request = promptRequest('embed', prompt, options, ['pooling'], info);
  const { pooling = 'mean' } = options;
  checkName('pooling', pooling, poolings);
  return { ...request, pooling };
}

export function scoreRequest(
  prompt: Prompt,
  options: ComputeOptions,
  info: EngineInfo,
): PromptRequest {
  return promptRequest('score', prompt, options, [], info);
}

function promptRequest(
  method: string,
  prompt: Prompt,
  options: ComputeOptions,
  ownNames: readonly string[],
  info: EngineInfo,
): PromptRequest {
  checkNames(method, options, [...ownNames, 'allowSpecial', 'signal']);
  checkSignal(options.signal);
  const { allowSpecial = false } = options;
  checkBoolean('allowSpecial', allowSpecial);
  return { prompt: promptIds(prompt, info.config.vocabSize, false), allowSpecial };
}
