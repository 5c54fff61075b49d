import fc from 'fast-check';
import { expect, it } from 'vitest';
import {
  formatProbability,
  likelihoodStep,
  visibleText,
} from '../../../web/src/playground/token-info.ts';

it('the likelier a token, the higher its step', () => {
  const probabilities = fc.double({ min: 0, max: 1, noNaN: true });
  fc.assert(
    fc.property(probabilities, probabilities, (a, b) => {
      const [low, high] = [Math.log(Math.min(a, b)), Math.log(Math.max(a, b))];
      expect(likelihoodStep(low)).toBeLessThanOrEqual(likelihoodStep(high));
    }),
  );
  expect(likelihoodStep(-Infinity)).toBe(0);
  expect(likelihoodStep(0)).toBe(4);
});

it.each([
  [1, '100 %'],
  [0.999, '100 %'],
  [0.5, '50 %'],
  [0.0314, '3.1 %'],
  [0.00271, '0.27 %'],
  [0, '< 0.01 %'],
])('a probability of %d is written as %s', (probability, text) => {
  expect(formatProbability(Math.log(probability))).toBe(text);
});

it('shows what one would not see', () => {
  expect(visibleText(' king\n')).toBe('␣king↵');
  expect(visibleText('')).toBe('(part of a character)');
});
