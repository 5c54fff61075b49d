import type {
  LanguageModelV4CallOptions,
  LanguageModelV4Message,
  SharedV4Warning,
} from '@ai-sdk/provider';

import {
  type ChatPrompt,
  type ChatTemplate,
  type ChatTurn,
  plainChatTemplate,
} from '../chat-template.js';
import { InvalidArgumentError } from '../errors.js';
import type { GenerateOptions, Prompt } from '../types.js';

/** A call as the engine takes it. */
export interface ModelCall {
  readonly prompt: Prompt;
  readonly options: GenerateOptions;
  readonly warnings: SharedV4Warning[];
  /** Whether white space that the text begins with is part of it. */
  readonly keepsStart: boolean;
}

/** The settings that are options of `generate` under another name. */
const optionNames = {
  maxOutputTokens: 'maxTokens',
  temperature: 'temperature',
  topP: 'topP',
  topK: 'topK',
  presencePenalty: 'presencePenalty',
  frequencyPenalty: 'frequencyPenalty',
  seed: 'seed',
  abortSignal: 'signal',
} as const satisfies Partial<Record<keyof LanguageModelV4CallOptions, keyof GenerateOptions>>;

/** @throws InvalidArgumentError for a prompt that is more than text; what the template throws. */
export function readCall(
  call: LanguageModelV4CallOptions,
  template: ChatTemplate | undefined,
): ModelCall {
  const turns = call.prompt.map(readMessage);
  const [only] = turns;
  const isPlain = template === undefined && turns.length === 1 && only?.role === 'user';
  const { prompt, stop }: ChatPrompt = isPlain
    ? { prompt: only.content, stop: [] }
    : (template ?? plainChatTemplate)(turns);
  const options: Record<string, unknown> = { ...call.providerOptions?.kvasm };
  const stops = [...stop, ...(call.stopSequences ?? [])];
  if (stops.length > 0) options.stop = stops;
  for (const [name, option] of Object.entries(optionNames)) {
    const value = call[name as keyof typeof optionNames];
    if (value !== undefined) options[option] = value;
  }
  return {
    prompt,
    options,
    warnings: unsupported(call).map(feature => ({ type: 'unsupported', feature })),
    keepsStart: isPlain || turns.at(-1)?.role === 'assistant',
  };
}

function unsupported(call: LanguageModelV4CallOptions): string[] {
  const { tools = [], responseFormat, reasoning = 'none' } = call;
  const features: string[] = [];
  if (tools.length > 0) features.push('tools');
  if (responseFormat?.type === 'json') features.push('responseFormat');
  if (reasoning !== 'none' && reasoning !== 'provider-default') features.push('reasoning');
  return features;
}

function readMessage(message: LanguageModelV4Message): ChatTurn {
  const { role, content } = message;
  if (role === 'system') return { role, content };
  const other = content.find(({ type }) => type !== 'text');
  if (role === 'tool' || other) {
    const what = other ? `parts of the type "${other.type}"` : `messages of the role "${role}"`;
    throw new InvalidArgumentError(`kvasm reads text only, and no ${what}.`);
  }
  const texts = content.map(part => ('text' in part ? part.text : ''));
  return { role, content: texts.join('') };
}
