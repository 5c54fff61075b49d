import type { CacheEvent, CacheEventKind } from './cache-events.ts';

// What deserves the one line most, first.
const priority: readonly CacheEventKind[] = [
  'copied',
  'forked',
  'reused',
  'evicted',
  'slid',
  'rolled-back',
  'appended',
  'allocated',
  'ended',
  'kept',
];

/** Of several events, the one to tell of. */
export function mainEvent(events: readonly CacheEvent[]): CacheEvent | undefined {
  return [...events].sort((a, b) => priority.indexOf(a.kind) - priority.indexOf(b.kind))[0];
}

/** One line for a person; empty when nothing has happened. */
export function describeEvents(events: readonly CacheEvent[]): string {
  const main = mainEvent(events);
  return main ? describeEvent(main, events) : '';
}

function describeEvent(event: CacheEvent, all: readonly CacheEvent[]): string {
  switch (event.kind) {
    case 'copied':
      return `Block ${event.from} copied on write: sequence ${event.sequence} goes on in its copy, block ${event.to}.`;
    case 'forked':
      return `Sequence ${event.sequence} forked from sequence ${event.from}: ${blocks(event.blocks)} shared, nothing copied.`;
    case 'reused':
      return `Prefix hit: sequence ${event.sequence} takes over ${blocks(event.blocks)}, so ${tokens(event.tokens)} need no computing.`;
    case 'evicted':
      return `${Blocks(event.blocks)} evicted from the prefix tree, to make room.`;
    case 'slid':
      return `${Blocks(event.blocks)} slid out of the window: no later token can see ${event.blocks.length === 1 ? 'it' : 'them'}.`;
    case 'rolled-back':
      return `Sequence ${event.sequence} rolled back by ${tokens(event.tokens)}, to ${event.size}.`;
    case 'appended': {
      const taken = all.find(other => other.kind === 'allocated');
      const fresh =
        taken?.kind === 'allocated' ? `; ${blocks(taken.blocks)} taken from the pool` : '';
      if (event.tokens === 1) {
        return `Token ${event.size} appended to block ${event.block}, ${event.filled} of ${event.room} filled${fresh}.`;
      }
      return `${tokens(event.tokens)} appended, ${event.size} in all${fresh}.`;
    }
    case 'allocated':
      return `${Blocks(event.blocks)} taken from the pool for sequence ${event.sequence}.`;
    case 'ended':
      return `Sequence ${event.sequence} ended: its blocks go back to the pool, unless others hold them.`;
    case 'kept':
      return `${Blocks(event.blocks)} kept in the prefix tree, for prompts that begin alike.`;
  }
}

function tokens(count: number): string {
  return `${count} token${count === 1 ? '' : 's'}`;
}

function blocks(ids: readonly number[]): string {
  if (ids.length === 1) return `block ${ids[0]}`;
  return ids.length > 3 ? `${ids.length} blocks` : `blocks ${ids.join(', ')}`;
}

function Blocks(ids: readonly number[]): string {
  const text = blocks(ids);
  return text.charAt(0).toUpperCase() + text.slice(1);
}
