import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type CacheEvent, cacheEvents } from '../../../web/src/cache/cache-events.ts';
import { describeEvents } from '../../../web/src/cache/describe-event.ts';
import { type Done, ToyCache, toySteps } from './toy-cache.ts';

/** Runs steps on a toy cache, and tells of each. */
function forEachStep(
  steps: readonly { kind: Done['kind']; pick: number; times: number }[],
  check: (done: Done, events: CacheEvent[], cache: ToyCache) => void,
): void {
  const cache = new ToyCache(24);
  for (const { kind, pick, times } of steps) {
    for (let i = 0; i < (kind === 'append' ? times : 1); i++) {
      const before = cache.view();
      const done = cache.step(kind, pick);
      check(done, cacheEvents(before, cache.view()), cache);
    }
  }
}

const of = <Kind extends CacheEvent['kind']>(events: readonly CacheEvent[], kind: Kind) =>
  events.filter((event): event is Extract<CacheEvent, { kind: Kind }> => event.kind === kind);

describe('events between two views', () => {
  it('are none where nothing has happened', () => {
    fc.assert(
      fc.property(toySteps, steps => {
        forEachStep(steps, (_done, _events, cache) => {
          expect(cacheEvents(cache.view(), cache.view())).toEqual([]);
        });
      }),
    );
  });

  it('name what each step did, and its blocks', () => {
    fc.assert(
      fc.property(toySteps, steps => {
        forEachStep(steps, (done, events) => {
          const { kind, sequence, blocks } = done;
          if (kind === 'nothing') expect(events).toEqual([]);
          if (kind === 'fork') {
            expect(of(events, 'forked')).toMatchObject([{ sequence, blocks }]);
            expect(events).toHaveLength(1);
          }
          if (kind === 'slide') expect(events).toEqual([{ kind: 'slid', sequence, blocks }]);
          if (kind === 'evict') expect(events).toEqual([{ kind: 'evicted', blocks }]);
          if (kind === 'start')
            expect(of(events, 'allocated')).toMatchObject([{ sequence, blocks }]);
          if (kind === 'append') {
            expect(of(events, 'appended')).toMatchObject([{ sequence, tokens: 1 }]);
            expect(of(events, 'allocated').flatMap(event => event.blocks)).toEqual(blocks ?? []);
            const copied = done.copied ? [{ kind: 'copied', sequence, ...done.copied }] : [];
            expect(of(events, 'copied')).toEqual(copied);
          }
          if (kind === 'end') {
            expect(of(events, 'ended')).toMatchObject([{ sequence }]);
            const kept = of(events, 'kept').flatMap(event => event.blocks);
            expect(kept.sort()).toEqual([...(blocks ?? [])].sort());
          }
        });
      }),
    );
  });

  it('account for each token that sequences have more, however far the views lie apart', () => {
    fc.assert(
      fc.property(toySteps, fc.nat(40), (steps, at) => {
        const cache = new ToyCache(24);
        let before = cache.view();
        for (const [index, { kind, pick }] of steps.entries()) {
          if (index === at) before = cache.view();
          cache.step(kind, pick);
        }
        const after = cache.view();
        const events = cacheEvents(before, after);
        const old = new Map(before.sequences.map(sequence => [sequence.id, sequence.tokens]));
        for (const { id, tokens } of after.sequences) {
          const told = of(events, 'appended').filter(event => event.sequence === id);
          const forked = of(events, 'forked').some(event => event.sequence === id);
          const sum = told.reduce((total, event) => total + event.tokens, 0);
          if (old.has(id)) expect(sum).toBe(tokens - (old.get(id) ?? 0));
          else if (!forked) {
            const reused = of(events, 'reused').filter(event => event.sequence === id);
            expect(sum + reused.reduce((total, event) => total + event.tokens, 0)).toBe(tokens);
          }
        }
      }),
    );
  });

  it('are always told in a sentence', () => {
    fc.assert(
      fc.property(toySteps, steps => {
        forEachStep(steps, (done, events) => {
          const line = describeEvents(events);
          expect(line === '').toBe(done.kind === 'nothing');
          if (line !== '') expect(line).toMatch(/^[A-Z0-9].*\.$/);
          expect(line).not.toMatch(/undefined|NaN/);
        });
      }),
    );
  });
});

describe('a prefix hit', () => {
  const block = (id: number, refs: number, inPrefixTree: boolean) => {
    return { id, refs, filled: refs > 0 ? 16 : 0, inPrefixTree, lastUse: 0, owners: [] };
  };
  const before = {
    blockTokens: 16,
    copies: 0,
    blocks: [block(0, 1, true), block(1, 1, true), block(2, 0, false)],
    sequences: [],
  };
  const after = {
    ...before,
    blocks: [block(0, 2, true), block(1, 2, true), block(2, 1, false)],
    sequences: [{ id: 9, tokens: 40, table: [0, 1, 2] }],
  };

  it('tells the tokens that are there already from those that were computed', () => {
    expect(cacheEvents(before, after)).toEqual([
      { kind: 'reused', sequence: 9, blocks: [0, 1], tokens: 32 },
      { kind: 'allocated', sequence: 9, blocks: [2] },
      { kind: 'appended', sequence: 9, tokens: 8, size: 40, block: 2, filled: 8, room: 16 },
    ]);
  });

  it('is seen, too, when the sequence waited with an empty table', () => {
    const waiting = { ...before, sequences: [{ id: 9, tokens: 0, table: [] }] };
    expect(cacheEvents(waiting, after)).toEqual(cacheEvents(before, after));
  });

  it('has the line to itself', () => {
    expect(describeEvents(cacheEvents(before, after))).toBe(
      'Prefix hit: sequence 9 takes over blocks 0, 1, so 32 tokens need no computing.',
    );
  });
});

it('a copy on write has the line to itself', () => {
  const cache = new ToyCache(4);
  cache.step('start', 0);
  cache.step('fork', 0);
  const before = cache.view();
  cache.step('append', 1);
  expect(describeEvents(cacheEvents(before, cache.view()))).toBe(
    'Block 0 copied on write: sequence 2 goes on in its copy, block 1.',
  );
});
