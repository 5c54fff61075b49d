import type { CacheView } from 'kvasm';

/** What `MemoryReport.kv` has, for any moment, in tokens. */
export interface KvTokens {
  /** That sequences hold, each as often as one holds it. */
  readonly used: number;
  /** Of those, the room that sharing saves. */
  readonly shared: number;
  /** In blocks that only the prefix tree holds. */
  readonly cached: number;
}

export function kvTokens({ blocks, blockTokens, sequences }: CacheView): KvTokens {
  let [used, shared, cached] = [0, 0, 0];
  for (const { tokens, table } of sequences) {
    const dropped = table.filter(block => block < 0).length;
    used += tokens - dropped * blockTokens;
  }
  for (const { refs, inPrefixTree } of blocks) {
    const sharers = refs - (inPrefixTree ? 1 : 0);
    if (sharers > 1) shared += (sharers - 1) * blockTokens;
    if (sharers === 0 && inPrefixTree) cached += blockTokens;
  }
  return { used, shared, cached };
}
