import { Tokenizer } from '../../../bindings/ts/tokenizer/tokenizer.js';
import { loadGpt2 } from './gpt2-vocab.js';
import { mergesTxt } from './small-vocab.js';

let loaded: Tokenizer | undefined;

/** GPT-2's tokenizer, from its real vocabulary; only where `haveGpt2`. */
export function gpt2(): Tokenizer {
  if (loaded === undefined) {
    const { vocab, merges } = loadGpt2();
    loaded = Tokenizer.fromVocabAndMerges(JSON.stringify(vocab), mergesTxt(merges));
  }
  return loaded;
}
