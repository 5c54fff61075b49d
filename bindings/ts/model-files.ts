import { ModelError } from './errors.js';

/**
 * Names of the files of a model that are looked for: `config.json`; a tokenizer, as `tokenizer.json` or as `vocab.json`
 * with `merges.txt`; `model.safetensors`, or `model.safetensors.index.json` with the shards that it names. Any other
 * `.safetensors` or `.gguf` file counts as weights too. `generation_config.json` is optional. A GGUF file needs no other.
 */
export const modelFileNames = [
  'config.json',
  'generation_config.json',
  'tokenizer.json',
  'vocab.json',
  'merges.txt',
  'model.safetensors',
  'model.safetensors.index.json',
] as const;

export type ModelFileName = (typeof modelFileNames)[number];

const single = 'model.safetensors' satisfies ModelFileName;
const index = 'model.safetensors.index.json' satisfies ModelFileName;

/** Whether a file's name, without folders, is one that belongs to a model. */
export function isModelFile(name: string): boolean {
  return (modelFileNames as readonly string[]).includes(name) || isWeights(name);
}

/** Whether a file of this name holds weights, or the index of their shards. */
export function isWeights(name: string): boolean {
  return /\.(safetensors|safetensors\.index\.json|gguf)$/i.test(name);
}

export function isGguf(name: string): boolean {
  return /\.gguf$/i.test(name);
}

export function isIndex(name: string): boolean {
  return /\.safetensors\.index\.json$/i.test(name);
}

/**
 * What files of these names lack to be a model, as a person would say it; empty when they are one. Shards that an index
 * names are not looked at.
 * @param file The weights, where that is known.
 */
export function missingModelFiles(names: Iterable<string>, file?: string): string[] {
  const has = new Set(names);
  const weights = file === undefined ? [...has].filter(isWeights) : [file];
  if (weights.length > 0 && weights.every(isGguf)) return [];
  const missing: string[] = [];
  if (!has.has('config.json')) missing.push('config.json');
  if (weights.length === 0) missing.push(single);
  if (!has.has('tokenizer.json') && !(has.has('vocab.json') && has.has('merges.txt'))) {
    missing.push('tokenizer.json (or vocab.json and merges.txt)');
  }
  return missing;
}

/**
 * The weights among files of these names: `model.safetensors`, else the index of its shards, else the only other one that
 * is no shard, `.safetensors` before `.gguf`.
 * @throws ModelError when several are left.
 */
export function chooseWeights(names: readonly string[], where: string): string {
  const found = findWeights(names);
  if (found !== undefined) return found;
  const candidates = names.filter(isWeights);
  const reason =
    candidates.length === 0
      ? `has no weights (${single}, ${index} or a .gguf file)`
      : `has several files of weights; choose with the option file: ${candidates.join(', ')}`;
  throw new ModelError('load-failed', `${where} ${reason}.`);
}

function findWeights(names: Iterable<string>): string | undefined {
  // Those in folders are other formats' or other sizes.
  const candidates = [...names].filter(name => isWeights(name) && !name.includes('/'));
  for (const name of [single, index]) if (candidates.includes(name)) return name;
  for (const isKind of [isIndex, (name: string) => !isIndex(name) && !isGguf(name), isGguf]) {
    const ofKind = candidates.filter(isKind);
    if (ofKind.length === 1) return ofKind[0];
    if (ofKind.length > 1) return undefined;
  }
  return undefined;
}
