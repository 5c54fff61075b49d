import { expect, it } from 'vitest';

import { decodeCacheView } from '../../bindings/ts/cache-view.js';
import { loadFake } from './harness.js';

it('names the owners of each block, and what is in it', () => {
  const view = decodeCacheView(
    Int32Array.from([
      ...[4, 16, 3],
      ...[2, 1, 9],
      ...[1, 0, 0],
      ...[1, 0, 0],
      ...[0, 0, 0],
      2,
      ...[5, 35, 3, -1, 0, 2],
      ...[7, 14, 2, 1, 0],
    ]),
  );
  expect(view).toEqual({
    blockTokens: 16,
    copies: 3,
    blocks: [
      {
        id: 0,
        refs: 2,
        inPrefixTree: true,
        lastUse: 9,
        owners: [
          { sequence: 5, first: 16, filled: 16 },
          { sequence: 7, first: 16, filled: 0 },
        ],
      },
      {
        id: 1,
        refs: 1,
        inPrefixTree: false,
        lastUse: 0,
        owners: [{ sequence: 7, first: 0, filled: 14 }],
      },
      {
        id: 2,
        refs: 1,
        inPrefixTree: false,
        lastUse: 0,
        owners: [{ sequence: 5, first: 32, filled: 3 }],
      },
      { id: 3, refs: 0, inPrefixTree: false, lastUse: 0, owners: [] },
    ],
    sequences: [
      { id: 5, tokens: 35, table: [-1, 0, 2] },
      { id: 7, tokens: 14, table: [1, 0] },
    ],
  });
});

it('comes from an engine at every token, and knows a generation by its sequence', async () => {
  const { engine } = await loadFake();
  const generation = engine.generate('0123456789', { maxTokens: 90 });
  expect(generation.sequence).toBeUndefined();
  let views = 0;
  for await (const _ of generation) {
    const { sequences } = await engine.cacheView();
    if (sequences.some(({ id }) => id === generation.sequence)) views++;
  }
  expect(views).toBeGreaterThan(10);
  expect((await engine.cacheView()).sequences).toEqual([]);
});
