import type { CacheStrategy, Engine } from 'kvasm';
import type { Measure } from './report.ts';

/** One way to use the engine, which returns the figure that it is measured by. */
export interface Trial {
  readonly name: string;
  readonly unit: Measure['unit'];
  run(engine: Engine, prompt: Int32Array, signal: AbortSignal): Promise<number>;
}

const shortPrompt = 16;
const streams = 4;
const greedy = { temperature: 0, stopTokens: [] } as const;

/** In the order in which each round has them. */
export const trials: readonly Trial[] = [
  {
    name: 'prefill',
    unit: 'tokens/s',
    async run(engine, prompt, signal) {
      const options = { ...greedy, maxTokens: 1, reusePrefix: false, signal };
      const { timings } = await engine.generate(prompt, options).result();
      return prompt.length / (timings.prefill / 1000);
    },
  },
  decoding('decode, blocks', 'block', 64),
  decoding('decode, one piece moved', 'concat', 64),
  decoding('decode, no cache', 'none', 32),
  {
    name: `decode, ${streams} texts at once`,
    unit: 'tokens/s',
    async run(engine, prompt, signal) {
      const options = { ...greedy, maxTokens: 48, reusePrefix: false, signal };
      const start = prompt.subarray(0, shortPrompt);
      const runs = Array.from({ length: streams }, () => engine.generate(start, options).result());
      const results = await Promise.all(runs);
      const seconds = Math.max(...results.map(({ timings }) => timings.decode)) / 1000;
      const tokens = results.reduce((sum, { usage }) => sum + usage.completion - 1, 0);
      return tokens / seconds;
    },
  },
  firstToken('first token, unknown prompt', false),
  firstToken('first token, known prompt', true),
];

function decoding(name: string, cache: CacheStrategy, maxTokens: number): Trial {
  return {
    name,
    unit: 'tokens/s',
    async run(engine, prompt, signal) {
      const options = { ...greedy, cache, maxTokens, reusePrefix: false, signal };
      const start = prompt.subarray(0, shortPrompt);
      const { timings } = await engine.generate(start, options).result();
      return timings.tokensPerSecond ?? Number.NaN;
    },
  };
}

function firstToken(name: string, known: boolean): Trial {
  return {
    name,
    unit: 'ms',
    async run(engine, prompt, signal) {
      const options = { ...greedy, maxTokens: 1, reusePrefix: known, signal };
      // Others may have taken its place in the cache meanwhile.
      if (known) await engine.generate(prompt, options).result();
      return (await engine.generate(prompt, options).result()).timings.firstToken;
    },
  };
}
