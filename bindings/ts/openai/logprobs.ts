import type { GenerateChunk, TokenLogprob } from '../types.js';
import type { ChatLogprobs, CompletionLogprobs, TopLogprob } from './types.js';

/** Log-probabilities as completions have them. @param start Where in the text the chunks begin, in UTF-16 code units. */
export function completionLogprobs(
  chunks: readonly GenerateChunk[],
  start: number,
): CompletionLogprobs {
  let offset = start;
  return {
    tokens: chunks.map(({ text }) => text),
    token_logprobs: chunks.map(({ logprob }) => (logprob === undefined ? null : finite(logprob))),
    top_logprobs: chunks.map(({ topLogprobs }) => {
      if (!topLogprobs) return null;
      // The likelier first, so that it is the one that stays when two tokens read the same.
      const texts = topLogprobs.map(({ text, logprob }) => [text, finite(logprob)] as const);
      return Object.fromEntries(texts.reverse());
    }),
    text_offset: chunks.map(({ text }) => {
      const here = offset;
      offset += text.length;
      return here;
    }),
  };
}

/** Log-probabilities as chat completions have them. */
export function chatLogprobs(chunks: readonly GenerateChunk[]): ChatLogprobs {
  return {
    content: chunks.map(({ text, logprob = 0, topLogprobs = [] }) => ({
      ...topLogprob(text, logprob),
      top_logprobs: topLogprobs.map(({ text, logprob }: TokenLogprob) => topLogprob(text, logprob)),
    })),
    refusal: null,
  };
}

function topLogprob(token: string, logprob: number): TopLogprob {
  return { token, logprob: finite(logprob), bytes: null };
}

/** JSON knows no infinity; OpenAI's API has this number for it. */
function finite(logprob: number): number {
  return Math.max(logprob, -9999);
}
