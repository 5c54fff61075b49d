import fc from 'fast-check';
import { expect, it } from 'vitest';
import { strength, strongestKeys, visibility } from '../../../web/src/attention/attention-map.ts';

const positions = fc.nat(60);
const windows = fc.option(fc.integer({ min: 1, max: 30 }), { nil: undefined });

it('a token sees itself and as many before it as the window has', () => {
  fc.assert(
    fc.property(positions, windows, (query, window) => {
      const seen = Array.from({ length: 80 }, (_, key) => key).filter(
        key => visibility(query, key, window) === 'seen',
      );
      const first = window === undefined ? 0 : Math.max(query - window + 1, 0);
      expect(seen).toEqual(Array.from({ length: query - first + 1 }, (_, i) => first + i));
      expect(visibility(query, query + 1, window)).toBe('later');
    }),
  );
});

it('the strongest keys are seen, sorted, and no other is stronger', () => {
  const maps = fc.integer({ min: 1, max: 12 }).chain(count =>
    fc.record({
      texts: fc.constant(Array.from({ length: count }, (_, i) => `t${i}`)),
      weights: fc
        .array(fc.float({ min: 0, max: 1, noNaN: true }), {
          minLength: count ** 2,
          maxLength: count ** 2,
        })
        .map(values => Float32Array.from(values)),
      window: windows,
    }),
  );
  fc.assert(
    fc.property(maps, fc.nat(), (map, index) => {
      const query = index % map.texts.length;
      const found = strongestKeys(map, query, 3);
      const row = map.texts
        .map((_, key) => key)
        .filter(key => visibility(query, key, map.window) === 'seen')
        .map(key => map.weights[query * map.texts.length + key]!)
        .sort((a, b) => b - a);
      expect(found.map(({ weight }) => weight)).toEqual(row.slice(0, 3));
    }),
  );
});

it('more weight is never drawn weaker', () => {
  const weights = fc.double({ min: -0.1, max: 1.1, noNaN: true });
  fc.assert(
    fc.property(weights, weights, (a, b) => {
      expect(strength(Math.min(a, b))).toBeLessThanOrEqual(strength(Math.max(a, b)));
      expect(strength(a)).toBeGreaterThanOrEqual(0);
      expect(strength(a)).toBeLessThanOrEqual(1);
    }),
  );
});
