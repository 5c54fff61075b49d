// Drives @wllama/wllama: llama.cpp in a worker, on the CPU, with the default flash attention.

import { Wllama } from '/wllama/index.min.js';

const CONTEXT = 1024;
const BATCH = 512;
const GREEDY = { temperature: 0, temp: 0, top_k: 1, penalty_repeat: 1, ignore_eos: true };

/** @param {{ model: string, threads: number }} options `model` is the URL of a GGUF file */
export async function load({ model, threads }) {
  const blob = await (await fetch(model)).blob();
  const wllama = new Wllama({ default: '/wllama/wasm/wllama.wasm' }, { suppressNativeLog: true });
  await wllama.loadModel([blob], {
    n_threads: threads,
    n_ctx: CONTEXT,
    n_batch: BATCH,
    n_ubatch: BATCH,
    n_parallel: 1,
    n_gpu_layers: 0,
  });
  return {
    facts: {
      variant: wllama.isMultithread() ? 'multi-thread' : 'single-thread',
      threads: wllama.getNumThreads(),
      settings: `llama.cpp ${Wllama.getLibllamaVersion()}, n_ctx ${CONTEXT}, n_batch and n_ubatch ${BATCH}, keys and values f16`,
    },
    async generate({ prompt, count }) {
      const times = [];
      let text = '';
      let last;
      const started = performance.now();
      await wllama.createCompletion({
        ...GREEDY,
        prompt,
        max_tokens: count,
        cache_prompt: false,
        stream: true,
        onData(chunk) {
          times.push(performance.now() - started);
          text += chunk.choices[0]?.text ?? '';
          last = chunk;
        },
      });
      const { prompt_n, prompt_per_second, predicted_n, predicted_per_second } = last.timings;
      return {
        times,
        text,
        own: {
          promptTokens: prompt_n,
          prefill: prompt_per_second,
          tokens: predicted_n,
          decode: predicted_per_second,
        },
      };
    },
  };
}
