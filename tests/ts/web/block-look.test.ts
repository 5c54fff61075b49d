import fc from 'fast-check';
import { expect, it } from 'vitest';
import {
  blockLooks,
  describeLook,
  firstPlaces,
  sameLook,
} from '../../../web/src/cache/block-look.ts';
import { blockTokens, ToyCache, toySteps } from './toy-cache.ts';

/** Views of a toy cache after any steps. */
const views = toySteps.map(steps => {
  const cache = new ToyCache(24);
  for (const { kind, pick, times } of steps) {
    for (let i = 0; i < times; i++) cache.step(kind, pick);
  }
  return cache.view();
});
const windows = fc.option(fc.integer({ min: 1, max: 80 }), { nil: undefined });

it('a block is free, used or cached, as its references and owners say', () => {
  fc.assert(
    fc.property(views, windows, (view, window) => {
      for (const [id, look] of blockLooks(view, window).entries()) {
        const { refs, owners, inPrefixTree } = view.blocks[id]!;
        expect(look.kind === 'free').toBe(refs === 0);
        expect(look.kind === 'cached').toBe(refs > 0 && owners.length === 0);
        expect(look.owners).toHaveLength(owners.length);
        expect(look.refs).toBe(owners.length + (inPrefixTree ? 1 : 0));
      }
    }),
  );
});

it('the places filled are the tokens that sequences hold', () => {
  fc.assert(
    fc.property(views, view => {
      const looks = blockLooks(view);
      for (const { tokens, table } of view.sequences) {
        const held = table.filter(block => block >= 0);
        const dropped = table.length - held.length;
        const filled = held.reduce((sum, block) => sum + looks[block]!.filled, 0);
        // What is shared may hold more for another.
        expect(filled).toBeGreaterThanOrEqual(tokens - dropped * blockTokens);
        expect(filled).toBeLessThanOrEqual(held.length * blockTokens);
      }
    }),
  );
});

it('tokens are out of the window exactly when the next token cannot see them', () => {
  fc.assert(
    fc.property(views, windows, (view, window) => {
      const looks = blockLooks(view, window);
      for (const { id, owners } of view.blocks) {
        if (owners.length !== 1) continue;
        const { sequence, first, filled } = owners[0]!;
        const next = view.sequences.find(other => other.id === sequence)!.tokens;
        let unseen = 0;
        for (let i = first; i < first + filled; i++) {
          if (window !== undefined && i < next - window + 1) unseen++;
        }
        expect(looks[id]!.unseen).toBe(unseen);
      }
    }),
  );
});

it('the same view looks the same, and is told in a sentence', () => {
  fc.assert(
    fc.property(views, windows, (view, window) => {
      const again = blockLooks(view, window);
      for (const [id, look] of blockLooks(view, window).entries()) {
        expect(sameLook(look, again[id]!)).toBe(true);
        expect(describeLook(look, blockTokens)).toMatch(new RegExp(`^Block ${id}: .*\\.$`));
      }
    }),
  );
});

it('the area of the first places is as large as they are', () => {
  fc.assert(
    fc.property(fc.nat(16), count => {
      const points = [...firstPlaces(count, 8, 2).matchAll(/([\d.]+)% ([\d.]+)%/g)].map(
        ([, x, y]) => [Number(x), Number(y)] as const,
      );
      // The shoelace formula.
      const twice = points.reduce((sum, [x, y], i) => {
        const [nextX, nextY] = points[(i + 1) % points.length]!;
        return sum + x * nextY - nextX * y;
      }, 0);
      expect(twice / 2).toBeCloseTo((count / 16) * 100 * 100);
    }),
  );
});
