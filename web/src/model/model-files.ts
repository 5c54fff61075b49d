/** The files of a model, by their Hugging Face names. */
export const modelFileNames: readonly string[] = [
  'config.json',
  'model.safetensors',
  'tokenizer.json',
  'vocab.json',
  'merges.txt',
];

/** What a model with these files lacks, as a person would say it. */
export function missingModelFiles(files: ReadonlyMap<string, unknown>): string[] {
  const missing = ['config.json', 'model.safetensors'].filter(name => !files.has(name));
  const hasTokenizer =
    files.has('tokenizer.json') || (files.has('vocab.json') && files.has('merges.txt'));
  if (!hasTokenizer) missing.push('tokenizer.json (or vocab.json and merges.txt)');
  return missing;
}
