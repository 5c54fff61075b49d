/** Another implementation as the judge, where its answers are GPT-2's. */
import { Tokenizer as PeerTokenizer } from '@huggingface/tokenizers';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { gpt2 } from './gpt2.js';
import { haveGpt2, loadGpt2, needsGpt2 } from './gpt2-vocab.js';
import { tokenizerJson } from './small-vocab.js';
import { anyText } from './texts.js';

// The peer always reads control tokens in the text, so the comparison allows them. It cuts by JavaScript's
// \s, which is not White_Space for these two, and refuses to decode nothing.
const agreed = anyText.map(text => text.replace(/[\u0085\ufeff]/g, '') || 'a');

test.skipIf(!haveGpt2)(`ids and text are those of @huggingface/tokenizers${needsGpt2}`, () => {
  const file: object = JSON.parse(
    tokenizerJson(loadGpt2(), {
      added_tokens: [{ id: 50256, content: '<|endoftext|>', special: true, normalized: true }],
    }),
  );
  const peer = new PeerTokenizer(file, { clean_up_tokenization_spaces: false });
  fc.assert(
    fc.property(agreed, text => {
      const ids = [...gpt2().encode(text, { allowSpecial: true })];
      expect(ids).toEqual(peer.encode(text).ids);
      expect(gpt2().decode(ids)).toBe(peer.decode(ids));
    }),
    { numRuns: 500 },
  );
});
