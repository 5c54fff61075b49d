// Who takes part: each engine with a precision of its weights.

export const PRECISIONS = { f32: 'float32', q8: '8 bits', q4: '4 bits' };

/** The engines that are not ours, by their packages. */
export const PEERS = { wllama: '@wllama/wllama', 'onnxruntime-web': 'onnxruntime-web' };

/**
 * `model` is in the models' folder; what is alike in bits is compared. There is no onnxruntime-web with 4 bits: its
 * MatMulNBits (block size 32, accuracy level 4) unpacked all weights for each token here, and took 12 times as long as int8.
 */
export const ENTRANTS = [
  { engine: 'kvasm', precision: 'f32', stored: 'f32', model: 'checkpoint/', dtype: 'f32' },
  { engine: 'wllama', precision: 'f32', stored: 'F32', model: 'f32.gguf' },
  { engine: 'onnxruntime-web', precision: 'f32', stored: 'fp32', model: 'fp32.onnx' },
  { engine: 'kvasm', precision: 'q8', stored: 'q8', model: 'checkpoint/', dtype: 'q8' },
  { engine: 'wllama', precision: 'q8', stored: 'Q8_0', model: 'q8_0.gguf' },
  { engine: 'onnxruntime-web', precision: 'q8', stored: 'int8', model: 'int8.onnx' },
  { engine: 'kvasm', precision: 'q4', stored: 'q4', model: 'checkpoint/', dtype: 'q4' },
  { engine: 'wllama', precision: 'q4', stored: 'Q4_0', model: 'q4_0.gguf' },
];

/** What else is measured beside the engines, and can be asked for. */
export const EXTRAS = ['read-loop', 'torch', 'strategies'];

const engines = [...new Set(ENTRANTS.map(({ engine }) => engine))];

/**
 * Takes the words of `--only`: engines and extras, precisions, or both; none of a kind means all of it.
 * @returns {(name: string, precision: string) => boolean} whether something takes part
 */
export function selection(words) {
  const parts = words.filter(word => engines.includes(word) || EXTRAS.includes(word));
  const precisions = words.filter(word => Object.hasOwn(PRECISIONS, word));
  const unknown = words.find(word => !parts.includes(word) && !precisions.includes(word));
  if (unknown !== undefined) {
    const known = [...engines, ...EXTRAS, ...Object.keys(PRECISIONS)];
    throw new Error(`--only: '${unknown}' is not one of ${known.join(', ')}`);
  }
  const fits = (list, word) => list.length === 0 || list.includes(word);
  return (name, precision) => fits(parts, name) && fits(precisions, precision);
}
