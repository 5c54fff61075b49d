import { Engine, type Session } from 'kvasm';
import { expect, it } from 'vitest';
import { kvTokens } from '../../../web/src/cache/kv-tokens.ts';
import { madeUpModel } from '../../browser/support/models.mjs';

it('a view has the numbers that the engine tells of its memory', async () => {
  const engine = await Engine.load(await madeUpModel('tiny'), { window: 70, kvBytes: 400_000 });
  const check = async () => {
    const [view, { kv }] = await Promise.all([engine.cacheView(), engine.memory()]);
    const tokens = kvTokens(view);
    const { perToken, used, shared, cached } = kv;
    expect(tokens.used).toBe(kv.tokens);
    expect({
      used: tokens.used * perToken,
      shared: tokens.shared * perToken,
      cached: tokens.cached * perToken,
    }).toEqual({ used, shared, cached });
    return tokens;
  };
  const seen = [await check()];
  const run = async (session: Session, prompt: string, maxTokens: number) => {
    const options = { maxTokens, temperature: 1, seed: 1, stopTokens: [] };
    for await (const _ of session.generate(prompt, options)) seen.push(await check());
  };
  const first = engine.session();
  await run(first, 'the quick brown fox', 60);
  const second = await first.fork();
  seen.push(await check());
  await Promise.all([run(first, ' and', 60), run(second, ' or', 40)]);
  await first.dispose();
  seen.push(await check());
  await second.dispose();
  await engine.generate('the quick brown dog', { maxTokens: 4, stopTokens: [] }).result();
  seen.push(await check());
  for (const name of ['used', 'shared', 'cached'] as const) {
    expect(Math.max(...seen.map(tokens => tokens[name]))).toBeGreaterThan(0);
  }
  await engine.dispose();
});
