// Drives onnxruntime-web's WebAssembly backend with a graph that takes and gives keys and values.

import * as ort from '/ort/ort.wasm.min.mjs';

function argmax(logits) {
  let best = 0;
  for (let id = 1; id < logits.length; id++) if (logits[id] > logits[best]) best = id;
  return best;
}

/** @param {{ model: string, threads: number }} options `model` is the URL of an ONNX file */
export async function load({ model, threads, config }) {
  ort.env.wasm.numThreads = threads;
  ort.env.wasm.wasmPaths = '/ort/';
  const bytes = new Uint8Array(await (await fetch(model)).arrayBuffer());
  const session = await ort.InferenceSession.create(bytes, {
    executionProviders: ['wasm'],
    graphOptimizationLevel: 'all',
  });
  const { n_layer: layers, n_head: heads, n_embd: width } = config;
  const caches = Array.from({ length: layers }, (_, i) => [`k.${i}`, `v.${i}`]).flat();
  const empty = () => new ort.Tensor('float32', new Float32Array(0), [1, heads, 0, width / heads]);

  /** Feeds ids after the past; the likeliest next id, and the past with these. */
  async function step(ids, past) {
    const input = new ort.Tensor('int64', BigInt64Array.from(ids, BigInt), [1, ids.length]);
    const feeds = { input_ids: input };
    for (const cache of caches) feeds[`past_${cache}`] = past[`present_${cache}`] ?? empty();
    const output = await session.run(feeds);
    return { next: argmax(output.logits.data), past: output };
  }

  return {
    facts: {
      variant: 'ort-wasm-simd-threaded',
      threads: ort.env.wasm.numThreads,
      settings: 'all graph optimisations, keys and values f32, the worker proxy off',
    },
    async generate({ ids, count }) {
      const times = [];
      const drawn = [];
      const started = performance.now();
      let { next, past } = await step(ids, {});
      for (;;) {
        times.push(performance.now() - started);
        drawn.push(next);
        if (drawn.length === count) return { times, ids: drawn };
        ({ next, past } = await step([next], past));
      }
    },
  };
}
