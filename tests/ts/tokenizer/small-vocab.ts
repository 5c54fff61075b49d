/** Small made-up vocabularies, for the tests that do not need GPT-2's. */

/** The letters of the 256 bytes, each found from GPT-2's rule anew: printable Latin-1, then U+0100 on. */
export function byteLetters(): string[] {
  const printable = (byte: number) =>
    /[!-~\u00a1-\u00ac\u00ae-\u00ff]/.test(String.fromCharCode(byte));
  let next = 0x100;
  return Array.from({ length: 256 }, (_, byte) =>
    String.fromCharCode(printable(byte) ? byte : next++),
  );
}

export interface SmallVocab {
  vocab: Record<string, number>;
  merges: [string, string][];
}

/** The bytes as ids 0 to 255, then a token for every merge that makes a new one. */
export function smallVocab(merges: [string, string][] = []): SmallVocab {
  const tokens = new Set(byteLetters());
  for (const [left, right] of merges) tokens.add(left + right);
  return { vocab: Object.fromEntries([...tokens].map((token, id) => [token, id])), merges };
}

/** A `merges.txt` as GPT-2's. */
export function mergesTxt(merges: readonly (string | [string, string])[]): string {
  const lines = merges.map(merge => (typeof merge === 'string' ? merge : merge.join(' ')));
  return `#version: 0.2\n${lines.join('\n')}\n`;
}

/** A `tokenizer.json` as GPT-2's, with some of its parts replaced. */
export function tokenizerJson(
  { vocab, merges }: { vocab: Record<string, number>; merges: unknown },
  file: Record<string, unknown> = {},
  model: Record<string, unknown> = {},
): string {
  return JSON.stringify({
    version: '1.0',
    truncation: null,
    padding: null,
    added_tokens: [],
    normalizer: null,
    pre_tokenizer: { type: 'ByteLevel', add_prefix_space: false, trim_offsets: true },
    post_processor: { type: 'ByteLevel', add_prefix_space: true, trim_offsets: false },
    decoder: { type: 'ByteLevel', add_prefix_space: true, trim_offsets: true },
    model: {
      type: 'BPE',
      dropout: null,
      unk_token: null,
      continuing_subword_prefix: '',
      end_of_word_suffix: '',
      fuse_unk: false,
      vocab,
      merges,
      ...model,
    },
    ...file,
  });
}
