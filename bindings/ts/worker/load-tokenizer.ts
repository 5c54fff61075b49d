import { errorFor, KvasmError } from '../errors.js';
import { describeThrown } from '../protocol.js';
import { Tokenizer } from '../tokenizer/tokenizer.js';
import type { WasmLoader } from '../wasm-module.js';
import type { OpenFile } from './files.js';
import { locate } from './locate.js';
import { type Reader, readText, requireFile, withFiles } from './read-file.js';

/** From tokenizer.json, or, where there is none, from vocab.json and merges.txt. */
export async function loadTokenizer(reader: Reader): Promise<Tokenizer> {
  const { folder, tracker } = reader;
  const read = (file: OpenFile, name: string) => readText(file, 'tokenizer', name, tracker);
  return withFiles(reader, async opened => {
    const single = await folder.find('tokenizer.json');
    if (!('missing' in single)) {
      const text = await read(opened(single), 'tokenizer.json');
      return make(single.label, () => Tokenizer.fromTokenizerJson(text));
    }
    const vocab = await folder.find('vocab.json');
    if ('missing' in vocab) {
      throw errorFor(
        'invalid-tokenizer',
        `The model has neither ${single.label} (${single.missing}) nor ${vocab.label} (${vocab.missing}).`,
      );
    }
    const vocabText = await read(opened(vocab), 'vocab.json');
    const merges = opened(await requireFile(folder, 'merges.txt'));
    const mergesText = await read(merges, 'merges.txt');
    return make(vocab.label, () => Tokenizer.fromVocabAndMerges(vocabText, mergesText));
  });
}

/** The one that a GGUF file brings, once its header is through; undefined where it brings none. */
export function ggufTokenizer(loader: WasmLoader, label: string): Tokenizer | undefined {
  const source = loader.ggufTokenizer();
  if (!source || source.model === null) return undefined;
  return make(label, () => Tokenizer.fromGguf(source));
}

function make(label: string, makeTokenizer: () => Tokenizer): Tokenizer {
  try {
    return makeTokenizer();
  } catch (error) {
    if (error instanceof KvasmError) throw errorFor(error.code, locate(label, error.message));
    throw errorFor('invalid-tokenizer', `${label}: ${describeThrown(error)}`);
  }
}
