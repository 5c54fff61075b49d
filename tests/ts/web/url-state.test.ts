import fc from 'fast-check';
import { expect, it } from 'vitest';
import { fromFragment, toFragment } from '../../../web/src/url-state.ts';

const defaults = { prompt: 'Once upon a time', seed: '', view: 'playground' };
const states = fc.record({
  prompt: fc.string({ unit: 'grapheme' }),
  seed: fc.string(),
  view: fc.constantFrom('playground', 'lessons'),
});

it('a state comes back from its fragment', () => {
  fc.assert(
    fc.property(states, state => {
      expect(fromFragment(`#${toFragment(state, defaults)}`, defaults)).toEqual(state);
    }),
  );
});

it('the defaults need no fragment', () => {
  expect(toFragment(defaults, defaults)).toBe('');
  expect(fromFragment('', defaults)).toEqual(defaults);
});

it('anything else in a fragment is passed over', () => {
  fc.assert(
    fc.property(fc.string(), fragment => {
      expect(Object.keys(fromFragment(fragment, defaults))).toEqual(Object.keys(defaults));
    }),
  );
  expect(fromFragment('#__proto__=1&seed=4', defaults)).toEqual({ ...defaults, seed: '4' });
});
