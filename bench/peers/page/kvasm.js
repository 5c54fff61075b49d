// Drives the built package as a page does that uses it without a bundler.

import { Engine } from '/kvasm/index.js';

/** @param {{ model: string, dtype: string, threads: number }} options `model` is the URL of a folder */
export async function load({ model, dtype, threads }) {
  const engine = await Engine.load(model, { dtype, threads });
  const { threads: used, kvDtype, prefillChunk, config } = engine.info;
  const { weights } = await engine.memory();
  const facts = {
    threads: used,
    settings: `keys and values ${kvDtype}, ${prefillChunk} prompt tokens a pass`,
    // The rows of the position table are not read, but for one.
    weightBytesPerToken: weights - config.nPositions * config.nEmbd * 4,
  };
  return {
    facts,
    async generate({ ids, count, cache }) {
      const options = {
        maxTokens: count,
        temperature: 0,
        stopTokens: [],
        reusePrefix: false,
        cache,
      };
      const times = [];
      let text = '';
      const started = performance.now();
      for await (const chunk of engine.generate(ids, options)) {
        times.push(performance.now() - started);
        text += chunk.text;
      }
      return { times, text };
    },
  };
}
