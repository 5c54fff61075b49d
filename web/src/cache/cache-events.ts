import type { CacheSequence, CacheView } from 'kvasm';

/** What happened to the cache between two views of it. Blocks and sequences go by their ids. */
export type CacheEvent =
  /** A sequence took over blocks that the prefix tree kept, and need not compute their tokens. */
  | { kind: 'reused'; sequence: number; blocks: readonly number[]; tokens: number }
  /** A sequence came to be that has all blocks in common with another. */
  | { kind: 'forked'; sequence: number; from: number; blocks: readonly number[] }
  /** A shared, partly filled block was copied before it was written to. */
  | { kind: 'copied'; sequence: number; from: number; to: number }
  /** Keys and values of `tokens` more tokens; the last of them in `block`, which then holds `filled` of `room`. */
  | {
      kind: 'appended';
      sequence: number;
      tokens: number;
      size: number;
      block: number;
      filled: number;
      room: number;
    }
  /** Blocks were taken from the pool. */
  | { kind: 'allocated'; sequence: number; blocks: readonly number[] }
  /** Blocks that no later token can see have left the sequence's table. */
  | { kind: 'slid'; sequence: number; blocks: readonly number[] }
  | { kind: 'rolled-back'; sequence: number; tokens: number; size: number }
  | { kind: 'ended'; sequence: number; tokens: number }
  /** Blocks are kept for prompts that begin alike. */
  | { kind: 'kept'; blocks: readonly number[] }
  /** The prefix tree has given blocks up. */
  | { kind: 'evicted'; blocks: readonly number[] };

export type CacheEventKind = CacheEvent['kind'];

/** In no particular order; empty when nothing has happened. Views that lie further apart give sums. */
export function cacheEvents(before: CacheView, after: CacheView): CacheEvent[] {
  const events: CacheEvent[] = [];
  const earlier = new Map(before.sequences.map(sequence => [sequence.id, sequence]));
  for (const sequence of after.sequences) {
    const old = earlier.get(sequence.id);
    earlier.delete(sequence.id);
    // The same object, where nothing has happened to it.
    if (old === sequence) continue;
    if (old) events.push(...changesOf(old, sequence, before, after));
    else events.push(...beginningOf(sequence, before, after));
  }
  for (const { id, tokens } of earlier.values()) {
    events.push({ kind: 'ended', sequence: id, tokens });
  }
  events.push(...treeChanges(before, after));
  return events;
}

function beginningOf(sequence: CacheSequence, before: CacheView, after: CacheView): CacheEvent[] {
  const { id, table, tokens } = sequence;
  const held = table.filter(block => block >= 0);
  if (held.length === 0) return [];
  const parent = after.sequences.find(other => other.id < id && sameContext(other, sequence));
  if (parent) return [{ kind: 'forked', sequence: id, from: parent.id, blocks: held }];

  const events: CacheEvent[] = [];
  const reused = table.slice(0, adopted(table, before));
  if (reused.length > 0) {
    const reusedTokens = reused.length * after.blockTokens;
    events.push({ kind: 'reused', sequence: id, blocks: reused, tokens: reusedTokens });
  }
  const fresh = held.slice(reused.length);
  if (fresh.length > 0) events.push({ kind: 'allocated', sequence: id, blocks: fresh });
  const computed = tokens - reused.length * after.blockTokens;
  if (computed > 0) events.push(appended(sequence, computed, after));
  return events;
}

function changesOf(
  old: CacheSequence,
  sequence: CacheSequence,
  before: CacheView,
  after: CacheView,
): CacheEvent[] {
  const { id, table, tokens } = sequence;
  const events: CacheEvent[] = [];
  const slid = old.table.filter((block, index) => block >= 0 && table[index] === -1);
  if (slid.length > 0) events.push({ kind: 'slid', sequence: id, blocks: slid });

  // A new sequence may wait for its first step with an empty table.
  const reused = old.table.length === 0 ? table.slice(0, adopted(table, before)) : [];
  const reusedTokens = reused.length * after.blockTokens;
  if (reused.length > 0) {
    events.push({ kind: 'reused', sequence: id, blocks: reused, tokens: reusedTokens });
  }

  const allocated: number[] = [];
  for (const [index, block] of table.entries()) {
    const was = old.table[index];
    if (block < 0 || block === was || index < reused.length) continue;
    const shared = was !== undefined && was >= 0 && (before.blocks[was]?.refs ?? 0) > 1;
    if (shared && after.copies > before.copies) {
      events.push({ kind: 'copied', sequence: id, from: was, to: block });
    } else {
      allocated.push(block);
    }
  }
  if (allocated.length > 0) events.push({ kind: 'allocated', sequence: id, blocks: allocated });
  const computed = tokens - old.tokens - reusedTokens;
  if (computed > 0) events.push(appended(sequence, computed, after));
  if (tokens < old.tokens) {
    events.push({ kind: 'rolled-back', sequence: id, tokens: old.tokens - tokens, size: tokens });
  }
  return events;
}

function treeChanges(before: CacheView, after: CacheView): CacheEvent[] {
  const [kept, evicted]: [number[], number[]] = [[], []];
  for (const block of after.blocks) {
    const was = before.blocks[block.id];
    if (block === was || block.inPrefixTree === (was?.inPrefixTree ?? false)) continue;
    (block.inPrefixTree ? kept : evicted).push(block.id);
  }
  const events: CacheEvent[] = [];
  if (kept.length > 0) events.push({ kind: 'kept', blocks: kept });
  if (evicted.length > 0) events.push({ kind: 'evicted', blocks: evicted });
  return events;
}

/** How many of a table's first blocks were in the prefix tree already. */
function adopted(table: readonly number[], before: CacheView): number {
  const end = table.findIndex(block => !before.blocks[block]?.inPrefixTree);
  return end < 0 ? table.length : end;
}

function appended(sequence: CacheSequence, tokens: number, view: CacheView): CacheEvent {
  const last = sequence.tokens - 1;
  const index = Math.floor(last / view.blockTokens);
  return {
    kind: 'appended',
    sequence: sequence.id,
    tokens,
    size: sequence.tokens,
    block: sequence.table[index] ?? -1,
    filled: last - index * view.blockTokens + 1,
    room: view.blockTokens,
  };
}

function sameContext(one: CacheSequence, other: CacheSequence): boolean {
  return (
    one.tokens === other.tokens &&
    one.table.length === other.table.length &&
    one.table.every((block, index) => block === other.table[index])
  );
}
