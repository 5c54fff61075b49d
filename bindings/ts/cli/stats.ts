import type { EngineInfo, GenerateResult, KvDtype } from '../types.js';
import { formatBytes } from './progress-bar.js';

/** The bytes of one head's key, or value, as a factor of a product. */
const headBytes = {
  f32: size => `${size} x 4 bytes`,
  f16: size => `${size} x 2 bytes`,
  q8: size => `(${size} + 4) bytes`,
} satisfies Record<KvDtype, (headSize: number) => string>;

/** What `--stats` prints, one line for each of load, prompt, decode and memory. */
export function formatStats(
  info: EngineInfo,
  { usage, timings, memory, finishReason }: GenerateResult,
): string {
  const { nLayer, nKvHead, nHead, nEmbd } = info.config;
  const { kv } = memory;
  const rate = timings.tokensPerSecond;
  const threads = info.threads === 1 ? '1 thread' : `${info.threads} threads`;
  return [
    `load: ${ms(timings.load)} (${info.variant}, ${threads})`,
    `prompt: ${usage.prompt} tokens, ${usage.cached} of them cached, prefill ${ms(timings.prefill)}, ` +
      `first token after ${ms(timings.firstToken)}`,
    `decode: ${usage.completion} tokens in all, ${ms(timings.decode)} after the first, ` +
      `${rate === undefined ? '-' : rate.toFixed(1)} tokens/s; ended by ${finishReason}`,
    `cache: ${kv.used} bytes used (${kv.tokens} tokens) of ${kv.reserved} reserved; ` +
      `a token takes ${kv.perToken} = ` +
      `2 x ${nLayer} layers x ${nKvHead} kv heads x ${headBytes[info.kvDtype](nEmbd / nHead)}`,
    `memory: weights ${formatBytes(memory.weights)}, activations ${formatBytes(memory.activations)}, ` +
      `WebAssembly heap ${formatBytes(memory.heap)}`,
    '',
  ].join('\n');
}

function ms(milliseconds: number): string {
  return `${milliseconds.toFixed(1)} ms`;
}
