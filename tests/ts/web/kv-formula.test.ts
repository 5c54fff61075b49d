import fc from 'fast-check';
import type { KvDtype } from 'kvasm';
import { expect, it } from 'vitest';
import { kvFactors } from '../../../web/src/cache/kv-formula.ts';

const heads = fc.integer({ min: 1, max: 16 });

it('the factors are those of the cache, and their product is what a token takes', () => {
  fc.assert(
    fc.property(
      heads,
      heads,
      fc.integer({ min: 1, max: 48 }),
      heads,
      (nKvHead, group, nLayer, size) => {
        const [nHead, headDim] = [nKvHead * group, size * 8];
        const config = { nLayer, nHead, nKvHead, nEmbd: nHead * headDim };
        const bytes: Record<KvDtype, number> = {
          f32: headDim * 4,
          f16: headDim * 2,
          q8: headDim + 4,
        };
        for (const dtype of ['f32', 'f16', 'q8'] as const) {
          const values = kvFactors(config, dtype).map(({ value }) =>
            value
              .replace(/[()]/g, '')
              .split(' + ')
              .reduce((sum, term) => sum + Number(term), 0),
          );
          const product = values.reduce((all, value) => all * value, 1);
          expect(product).toBe(2 * nLayer * nKvHead * bytes[dtype]);
        }
      },
    ),
  );
});
