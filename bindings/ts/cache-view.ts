/** The key/value cache at one moment. Sequences are runs and sessions with the cache strategy `block`, and others empty. */
export interface CacheView {
  /** Tokens that a block holds: 16. */
  readonly blockTokens: number;
  /** Blocks copied so far because one of several owners wrote into them. */
  readonly copies: number;
  /** The whole pool; a block's place is its id. */
  readonly blocks: readonly CacheBlock[];
  /** Those that there are now. */
  readonly sequences: readonly CacheSequence[];
}

/** A block of the pool. */
export interface CacheBlock {
  /** Its place in the pool. */
  readonly id: number;
  /** Owners, the prefix tree included; 0 is free. */
  readonly refs: number;
  /** Whether it is kept for prompts that begin alike. */
  readonly inPrefixTree: boolean;
  /** When the prefix tree last used it, on the tree's own clock; 0 outside it. The least is given up first. */
  readonly lastUse: number;
  /** The sequences that hold it. */
  readonly owners: readonly CacheOwner[];
}

/** What a block is to a sequence that holds it. */
export interface CacheOwner {
  /** The id of a sequence. */
  readonly sequence: number;
  /** The position of the block's first token in that sequence. */
  readonly first: number;
  /** The sequence's tokens in the block, 0 to `blockTokens`. */
  readonly filled: number;
}

/** A run or a session in the cache. */
export interface CacheSequence {
  /** Counts up from 1 over the engine's life. */
  readonly id: number;
  /** Positions computed, those that the window has dropped included. */
  readonly tokens: number;
  /** The block of each `blockTokens` positions in order; -1 where the window has dropped it. */
  readonly table: readonly number[];
}

/**
 * @internal
 * @param numbers As WasmEngine.cacheView lays them out.
 */
export function decodeCacheView(numbers: Int32Array): CacheView {
  let at = 0;
  const next = () => numbers[at++] ?? 0;
  const blockCount = next();
  const blockTokens = next();
  const copies = next();
  const owners = Array.from({ length: blockCount }, (): CacheOwner[] => []);
  const blocks = owners.map((ownersOfBlock, id): CacheBlock => {
    const [refs, inPrefixTree, lastUse] = [next(), next() === 1, next()];
    return { id, refs, inPrefixTree, lastUse, owners: ownersOfBlock };
  });
  const sequences = Array.from({ length: next() }, (): CacheSequence => {
    const [id, tokens, length] = [next(), next(), next()];
    const table = Array.from(numbers.subarray(at, at + length));
    at += length;
    for (const [index, block] of table.entries()) {
      const first = index * blockTokens;
      const filled = Math.max(0, Math.min(blockTokens, tokens - first));
      owners[block]?.push({ sequence: id, first, filled });
    }
    return { id, tokens, table };
  });
  return { blockTokens, copies, blocks, sequences };
}
