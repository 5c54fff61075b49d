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
  /** Tokens in it, 0 to `blockTokens`: what the owner with the most has, the prefix tree included. */
  readonly filled: number;
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
