import fc from 'fast-check';
import { describe, expect, it } from 'vitest';

import type { CacheView } from '../../bindings/ts/cache-view.js';
import { decodeCacheView, decodeCacheViews } from '../../bindings/ts/cache-view-decoder.js';
import { CacheRecordings } from '../../bindings/ts/worker/cache-recordings.js';
import { collect, idle, loadFake, rejection } from './harness.js';
import { ToyCache, toySteps } from './web/toy-cache.js';

it('names the owners of each block, and what is in it', () => {
  const view = decodeCacheView(
    Int32Array.from([
      ...[5, 16, 3],
      ...[2, 16, 9],
      ...[1, 0, 0],
      ...[1, 0, 0],
      ...[0, 0, 0],
      ...[1, 11, 8],
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
        filled: 16,
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
        filled: 14,
        inPrefixTree: false,
        lastUse: 0,
        owners: [{ sequence: 7, first: 0, filled: 14 }],
      },
      {
        id: 2,
        refs: 1,
        filled: 3,
        inPrefixTree: false,
        lastUse: 0,
        owners: [{ sequence: 5, first: 32, filled: 3 }],
      },
      { id: 3, refs: 0, filled: 0, inPrefixTree: false, lastUse: 0, owners: [] },
      // Only the prefix tree holds it, and knows what is in it.
      { id: 4, refs: 1, filled: 11, inPrefixTree: true, lastUse: 8, owners: [] },
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

describe('views in a row', () => {
  /** What a toy cache was after each of some steps. */
  const rows = toySteps.map(steps => {
    const cache = new ToyCache(24);
    const row = [{ view: cache.view(), numbers: cache.numbers() }];
    for (const { kind, pick, times } of steps) {
      for (let i = 0; i < (kind === 'append' ? times : 1); i++) {
        cache.step(kind, pick);
        row.push({ view: cache.view(), numbers: cache.numbers() });
      }
    }
    return row;
  });
  const joined = (row: readonly { numbers: Int32Array }[]) =>
    Int32Array.from(row.flatMap(({ numbers }) => [...numbers]));

  it('are those that each would be alone, in however many pieces they come', () => {
    fc.assert(
      fc.property(rows, fc.nat(100), (row, at) => {
        const first = decodeCacheViews(joined(row.slice(0, at)));
        const second = decodeCacheViews(joined(row.slice(at)), first.at(-1));
        expect([...first, ...second]).toEqual(row.map(({ view }) => view));
      }),
    );
  });

  it('have what is the same in one object', () => {
    fc.assert(
      fc.property(rows, row => {
        let before: CacheView | undefined;
        for (const view of decodeCacheViews(joined(row))) {
          for (const [id, block] of view.blocks.entries()) {
            const was = before?.blocks[id];
            if (was !== block) expect(block).not.toEqual(was);
          }
          for (const sequence of view.sequences) {
            const was = before?.sequences.find(({ id }) => id === sequence.id);
            if (was !== sequence) expect(sequence).not.toEqual(was);
          }
          before = view;
        }
      }),
    );
  });
});

describe('a recording', () => {
  const sizes = (views: readonly CacheView[]) => views.map(({ sequences }) => sequences[0]?.tokens);

  it('has a view for each step, however rarely it is asked for', async () => {
    const { engine } = await loadFake({ prefillChunk: 4 });
    const recording = await engine.recordCache();
    await engine.generate('0123456789', { maxTokens: 40 }).result();
    const views = await recording.take();
    const computed = [4, 8, ...Array.from({ length: 40 }, (_, i) => 10 + i)];
    expect(sizes(views)).toEqual([undefined, 0, ...computed, undefined]);
    expect(await recording.take()).toEqual([]);
    expect(views.at(-1)).toEqual(await engine.cacheView());
  });

  it('goes on where the last views were taken', async () => {
    const { engine } = await loadFake();
    const recording = await engine.recordCache();
    const views: CacheView[] = [];
    for await (const _ of engine.generate('0123', { maxTokens: 90 })) {
      views.push(...(await recording.take()));
    }
    views.push(...(await recording.take()));
    const computed = Array.from({ length: 90 }, (_, i) => 4 + i);
    expect(sizes(views)).toEqual([undefined, 0, ...computed, undefined]);
  });

  it('sees what is done between steps, too', async () => {
    const { engine } = await loadFake();
    const session = engine.session();
    await session.generate('0123', { maxTokens: 3 }).result();
    const recording = await engine.recordCache();
    const fork = await session.fork();
    await fork.truncate(2);
    await session.dispose();
    const views = await recording.take();
    const held = views.map(({ sequences }) => sequences.map(({ tokens }) => tokens));
    expect(held).toEqual([[6], [6, 6], [6, 1], [1]]);
  });

  it('costs no message but those that ask for it', async () => {
    const { engine, platform } = await loadFake();
    const messages = async () => {
      platform.sent = [];
      await collect(engine.generate('0123', { maxTokens: 90 }));
      return platform.sent.map(({ type }) => type);
    };
    const without = await messages();
    const recording = await engine.recordCache();
    expect(await messages()).toEqual(without);
    await recording.take();
  });

  it('is nothing to another', async () => {
    const { engine } = await loadFake();
    const [one, other] = [await engine.recordCache(), await engine.recordCache()];
    await engine.generate('0123', { maxTokens: 5 }).result();
    const views = await one.take();
    expect(views).toHaveLength(8);
    await one.stop();
    expect(await one.take()).toEqual([]);
    expect(await other.take()).toEqual(views);
  });

  it('keeps the latest views where nobody takes them, 16 MiB of them', () => {
    let step = 0;
    const recordings = new CacheRecordings({
      cacheView: () => new Int32Array(1 << 20).fill(++step),
    });
    recordings.start(1);
    for (let i = 0; i < 9; i++) recordings.record();
    const taken = recordings.take(1);
    const kept = [0, 1, 2, 3].map(i => taken[i << 20]);
    expect(taken.byteLength).toBe(2 ** 24);
    expect(kept).toEqual([step - 3, step - 2, step - 1, step]);
  });

  it('ends with its engine, and by hand twice without harm', async () => {
    const { engine } = await loadFake();
    const recording = await engine.recordCache();
    await recording.stop();
    await recording.stop();
    const other = await engine.recordCache();
    await engine.dispose();
    await idle();
    const disposed = { code: 'disposed' };
    expect(await rejection(other.take())).toMatchObject(disposed);
    expect(await rejection(engine.recordCache())).toMatchObject(disposed);
    await other.stop();
  });
});
