import { expect, it, vi } from 'vitest';

import { Deferred } from '../../../bindings/ts/deferred.js';
import { EngineKeeper, type MortalEngine } from '../../../bindings/ts/server/engine-keeper.js';
import { loadFake } from '../harness.js';

async function makeKeeper() {
  const first = await loadFake();
  const loading = new Deferred<MortalEngine>();
  const load = vi.fn(() => loading.promise);
  return { first, loading, load, keeper: new EngineKeeper(first.engine, load) };
}

it('an engine that lives is kept, and one that was disposed of is not replaced', async () => {
  const { first, load, keeper } = await makeKeeper();
  expect(await keeper.get()).toBe(first.engine);
  await keeper.dispose();
  expect(await keeper.get()).toBe(first.engine);
  expect(first.platform.alive).toBe(0);
  expect(load).not.toHaveBeenCalled();
});

it('a crashed engine is loaded once for all who ask meanwhile', async () => {
  const { first, loading, load, keeper } = await makeKeeper();
  const other = await loadFake();
  first.platform.fail('it was ended');
  const asked = [keeper.get(), keeper.get()];
  loading.resolve(other.engine);
  for (const engine of [...(await Promise.all(asked)), await keeper.get()]) {
    expect(engine).toBe(other.engine);
  }
  expect(load).toHaveBeenCalledOnce();
  // And anew for each crash.
  other.platform.fail('it was ended');
  void keeper.get();
  expect(load).toHaveBeenCalledTimes(2);
});

it('disposing waits for a load, and leaves nothing behind', async () => {
  const { first, loading, keeper } = await makeKeeper();
  const other = await loadFake();
  first.platform.fail('it was ended');
  const asked = keeper.get();
  const disposed = keeper.dispose();
  loading.resolve(other.engine);
  await Promise.all([asked, disposed]);
  expect(other.platform.alive).toBe(0);
});
