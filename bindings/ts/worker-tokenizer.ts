import { checkBoolean, checkInteger, checkNames, refuse } from './checks.js';
import type { EngineTokenizer } from './compute-types.js';
import type { LoadedEngine } from './generation.js';

/** The tokenizer of an engine, on this side of the Worker. */
export class WorkerTokenizer implements EngineTokenizer {
  readonly #loaded: LoadedEngine;

  constructor(loaded: LoadedEngine) {
    this.#loaded = loaded;
  }

  get vocabSize(): number {
    return this.#loaded.info.vocabSize;
  }

  async encode(text: string, options: { allowSpecial?: boolean } = {}): Promise<Int32Array> {
    if (typeof text !== 'string') refuse('text', text, 'a string');
    checkNames('encode', options, ['allowSpecial']);
    const { allowSpecial = false } = options;
    checkBoolean('allowSpecial', allowSpecial);
    return this.#loaded.client.call('encode', { text, allowSpecial });
  }

  async decode(
    ids: ArrayLike<number>,
    options: { readonly skipSpecial?: boolean } = {},
  ): Promise<string> {
    if (!Array.isArray(ids) && !ArrayBuffer.isView(ids)) {
      refuse('ids', ids, 'an array of token ids');
    }
    checkNames('decode', options, ['skipSpecial']);
    const { skipSpecial = false } = options;
    checkBoolean('skipSpecial', skipSpecial);
    const checked = Int32Array.from(ids, (id, index) => {
      checkInteger(`ids[${index}]`, id, 0, this.vocabSize - 1);
      return id;
    });
    return this.#loaded.client.call('decode', { ids: checked, skipSpecial });
  }
}
