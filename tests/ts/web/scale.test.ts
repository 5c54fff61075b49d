import fc from 'fast-check';
import { expect, it } from 'vitest';
import { median, smooth, ticks } from '../../../web/src/charts/scale.ts';

const positive = fc.double({ min: 1e-6, max: 1e9, noNaN: true });
const lists = fc.array(fc.double({ min: -1e6, max: 1e6, noNaN: true }), {
  minLength: 1,
  maxLength: 40,
});

it('ticks go from 0 to the largest value or a little further, evenly', () => {
  fc.assert(
    fc.property(positive, most => {
      const values = ticks(most, 4);
      const step = values[1]!;
      expect(values[0]).toBe(0);
      expect(values.at(-1)!).toBeGreaterThanOrEqual(most * (1 - 1e-6));
      expect(values.at(-1)!).toBeLessThan(most + step * (1 + 1e-6));
      expect(values.length).toBeGreaterThanOrEqual(2);
      expect(values.length).toBeLessThanOrEqual(6);
      for (const [i, value] of values.entries()) expect(value / step).toBeCloseTo(i, 6);
    }),
  );
});

it.each([0, -1, Number.NaN, Number.POSITIVE_INFINITY])('there are ticks for %d, too', most => {
  expect(ticks(most, 4)).toEqual([0, 1]);
});

it('as many values lie below the median as above it', () => {
  fc.assert(
    fc.property(lists, values => {
      const middle = median(values);
      const below = values.filter(value => value < middle).length;
      const above = values.filter(value => value > middle).length;
      expect(Math.max(below, above)).toBeLessThanOrEqual(values.length / 2);
    }),
  );
  expect(median([3, 1])).toBe(2);
  expect(median([])).toBeNaN();
});

it('smoothing keeps the range, and what is constant', () => {
  fc.assert(
    fc.property(lists, fc.integer({ min: 1, max: 9 }), (values, width) => {
      const smoothed = smooth(values, width);
      expect(smoothed).toHaveLength(values.length);
      expect(Math.max(...smoothed)).toBeLessThanOrEqual(Math.max(...values));
      expect(Math.min(...smoothed)).toBeGreaterThanOrEqual(Math.min(...values));
      expect(smooth(values, 1)).toEqual(values);
    }),
  );
});
