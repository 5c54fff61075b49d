// Weights in the integer formats of the peers.

import { halfBits } from '../../scripts/fixtures/random-weights.mjs';

const BLOCK = 32;

/** The rows of a matrix as columns. */
export function transpose(values, rows, columns) {
  const result = new Float32Array(values.length);
  for (let row = 0; row < rows; row++) {
    for (let column = 0; column < columns; column++) {
      result[column * rows + row] = values[row * columns + column];
    }
  }
  return result;
}

/** The element of a block that is farthest from zero, with its sign. */
function extreme(values, begin) {
  let largest = 0;
  for (let i = begin; i < begin + BLOCK; i++) {
    if (Math.abs(values[i]) > Math.abs(largest)) largest = values[i];
  }
  return largest;
}

const clamp = (value, low, high) => Math.min(Math.max(value, low), high);

/** 4 bits with an offset of 8, at a scale that makes the element farthest from zero -8. */
const fourBits = (value, inverse) => clamp(Math.floor(value * inverse + 8.5), 0, 15);

/** GGUF's Q8_0: for each 32 elements a float16 scale and 32 signed bytes. */
export function q8Blocks(values) {
  const bytes = Buffer.alloc((values.length / BLOCK) * (2 + BLOCK));
  let at = 0;
  for (let begin = 0; begin < values.length; begin += BLOCK) {
    const scale = Math.abs(extreme(values, begin)) / 127;
    const inverse = scale === 0 ? 0 : 1 / scale;
    at = bytes.writeUInt16LE(halfBits(scale), at);
    for (let i = begin; i < begin + BLOCK; i++) {
      at = bytes.writeInt8(Math.round(values[i] * inverse), at);
    }
  }
  return bytes;
}

/** GGUF's Q4_0: for each 32 elements a float16 scale and 16 bytes, of which byte i has the elements i and i + 16. */
export function q4Blocks(values) {
  const half = BLOCK / 2;
  const bytes = Buffer.alloc((values.length / BLOCK) * (2 + half));
  let at = 0;
  for (let begin = 0; begin < values.length; begin += BLOCK) {
    const scale = extreme(values, begin) / -8;
    const inverse = scale === 0 ? 0 : 1 / scale;
    at = bytes.writeUInt16LE(halfBits(scale), at);
    for (let i = begin; i < begin + half; i++) {
      bytes[at++] = fourBits(values[i], inverse) | (fourBits(values[i + half], inverse) << 4);
    }
  }
  return bytes;
}

/** Signed bytes with a scale for each column, for ONNX's MatMulInteger. */
export function int8Columns(values, rows, columns) {
  const scales = new Float32Array(columns);
  for (let i = 0; i < values.length; i++) {
    scales[i % columns] = Math.max(scales[i % columns], Math.abs(values[i]) / 127);
  }
  const inverses = scales.map(scale => (scale === 0 ? 0 : 1 / scale));
  const bytes = new Int8Array(rows * columns);
  for (let i = 0; i < values.length; i++) {
    bytes[i] = clamp(Math.round(values[i] * inverses[i % columns]), -127, 127);
  }
  return { bytes, scales };
}
