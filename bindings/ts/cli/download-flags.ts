import type { LoadOptions } from '../types.js';

/** Flags about getting a model's files, which several commands have. */
export const downloadFlags = { file: { type: 'string' }, storage: { type: 'string' } } as const;

export const downloadHelp = `\
  --file NAME         the weights, where the model has several: model.gguf
  --storage DIR       keeps downloads there, for the next time; default: nowhere
`;

export const hubHelp = `\
HF_TOKEN opens private and gated models of the hub; HF_ENDPOINT names another hub.
`;

/** @param flags What was given. */
export function downloadOptions({
  file,
  storage,
}: {
  readonly file?: string | undefined;
  readonly storage?: string | undefined;
}): Pick<LoadOptions, 'file' | 'storage'> {
  return {
    ...(file !== undefined && { file }),
    ...(storage !== undefined && { storage: { directory: storage } }),
  };
}

/** Options of the hub, by the variables that its own tools read. */
export function hubOptions(environment: NodeJS.ProcessEnv): LoadOptions {
  const { HF_TOKEN: hubToken, HF_ENDPOINT: hubUrl } = environment;
  return { ...(hubToken && { hubToken }), ...(hubUrl && { hubUrl }) };
}
