import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';

import { StopFinder } from '../../bindings/ts/worker/stop-finder.js';

/** Looks at the whole text at once, and at each of its beginnings. */
function naiveFind(text: string, stops: readonly string[]): number | undefined {
  for (let end = 1; end <= text.length; end++) {
    const found = stops.filter(stop => text.slice(0, end).endsWith(stop));
    if (found.length > 0) return end - Math.max(...found.map(stop => stop.length));
  }
  return undefined;
}

function naivePending(text: string, stops: readonly string[]): number {
  const lengths = stops.flatMap(stop => Array.from(stop, (_, length) => length));
  return Math.max(0, ...lengths.filter(n => stops.some(stop => text.endsWith(stop.slice(0, n)))));
}

// Few letters, so that strings overlap themselves and each other.
const letters = (minLength: number, maxLength: number) =>
  fc.array(fc.constantFrom('a', 'b', 'c'), { minLength, maxLength }).map(chosen => chosen.join(''));

describe('stop strings', () => {
  it('are found where a look at the whole text finds them, however it is cut', () => {
    fc.assert(
      fc.property(
        fc.array(letters(0, 4), { maxLength: 12 }),
        fc.array(letters(1, 6), { maxLength: 4 }),
        (pieces, stops) => {
          const finder = new StopFinder(stops);
          let text = '';
          for (const piece of pieces) {
            text += piece;
            const found = finder.push(piece);
            expect(found).toBe(naiveFind(text, stops));
            if (found !== undefined) return;
            expect(finder.pending).toBe(naivePending(text, stops));
          }
        },
      ),
      { numRuns: 2000 },
    );
  });

  it('that end first count, and the longest of those that end together', () => {
    expect(new StopFinder(['abcd', 'bc']).push('abcd')).toBe(1);
    expect(new StopFinder(['bc', 'abc']).push('abcd')).toBe(0);
    expect(new StopFinder(['b', 'b']).push('abab')).toBe(1);
    expect(new StopFinder([]).push('abab')).toBeUndefined();
  });

  it('take time for the text, not for what might have matched', () => {
    const finder = new StopFinder([`${'a'.repeat(10_000)}b`]);
    expect(finder.push('a'.repeat(200_000))).toBeUndefined();
    expect(finder.pending).toBe(10_000);
    expect(finder.push('b')).toBe(190_000);
  });
});
