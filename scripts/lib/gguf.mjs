// Writing GGUF, version 3: metadata, tensors' shapes, and ggml's quantised blocks.

import { floatCodecs } from './float-codecs.mjs';

const ALIGNMENT = 32;

const bytesOf = (size, set) => {
  const bytes = Buffer.alloc(size);
  set(bytes);
  return bytes;
};
const uint32 = n => bytesOf(4, bytes => bytes.writeUInt32LE(n));
const uint64 = n => bytesOf(8, bytes => bytes.writeBigUInt64LE(BigInt(n)));
const text = string => {
  const bytes = Buffer.from(string);
  return Buffer.concat([uint64(bytes.length), bytes]);
};

/** Values of metadata: [type, bytes]. */
export const ggufValue = {
  uint32: n => [4, uint32(n)],
  float32: n => [6, bytesOf(4, bytes => bytes.writeFloatLE(n))],
  text: string => [8, text(string)],
  texts: list => [9, Buffer.concat([uint32(8), uint64(list.length), ...list.map(text)])],
  int32s: list => [
    9,
    Buffer.concat([uint32(5), uint64(list.length), Buffer.from(Int32Array.from(list).buffer)]),
  ],
};

const writeFloats = codec => (floats, view) => {
  for (let i = 0; i < floats.length; i++) codec.write(view, i * codec.size, floats[i]);
};

/** Calls `write(block, view at its bytes)` for each 32 floats. */
const writeBlocks = (blockBytes, write) => (floats, view) => {
  for (let b = 0; b < floats.length / 32; b++) {
    const bytes = new DataView(view.buffer, view.byteOffset + b * blockBytes, blockBytes);
    write(floats.subarray(32 * b, 32 * b + 32), bytes);
  }
};

/** Writes a block's scale as F16, and returns what it reads as. */
function writeScale(view, scale) {
  floatCodecs.F16.write(view, 0, scale);
  return floatCodecs.F16.read(view, 0);
}

/** The one of the largest magnitude, with its sign. */
const extremeOf = block => block.reduce((a, b) => (Math.abs(b) > Math.abs(a) ? b : a), 0);

function writeQ8(block, view) {
  const scale = writeScale(view, Math.abs(extremeOf(block)) / 127);
  for (let i = 0; i < 32; i++) {
    const q = scale === 0 ? 0 : Math.round(block[i] / scale);
    view.setInt8(2 + i, Math.max(-127, Math.min(127, q)));
  }
}

function writeQ4(block, view) {
  // The extreme becomes the lowest of -8 .. 7.
  const scale = writeScale(view, extremeOf(block) / -8);
  const q = Array.from(block, x =>
    scale === 0 ? 8 : Math.max(0, Math.min(15, Math.round(x / scale) + 8)),
  );
  for (let i = 0; i < 16; i++) view.setUint8(2 + i, q[i] | (q[i + 16] << 4));
}

/** By name: ggml's number, floats in a block, a block's bytes, and how to write floats into a DataView. */
export const ggufTypes = {
  f32: { id: 0, block: 1, bytes: 4, write: writeFloats(floatCodecs.F32) },
  f16: { id: 1, block: 1, bytes: 2, write: writeFloats(floatCodecs.F16) },
  q4_0: { id: 2, block: 32, bytes: 18, write: writeBlocks(18, writeQ4) },
  q8_0: { id: 8, block: 32, bytes: 34, write: writeBlocks(34, writeQ8) },
};

const paddingFor = length => Buffer.alloc((ALIGNMENT - (length % ALIGNMENT)) % ALIGNMENT);

/**
 * The header of a file.
 * @param {[string, [number, Buffer]][]} metadata
 * @param {{ name: string, shape: number[], type: object }[]} tensors in order of their bytes, each shape
 *   with the fastest dimension last
 */
export function ggufHeader(metadata, tensors) {
  const pairs = metadata.map(([key, [type, bytes]]) =>
    Buffer.concat([text(key), uint32(type), bytes]),
  );
  let offset = 0;
  const infos = tensors.map(({ name, shape, type }) => {
    const dims = [...shape].reverse().map(uint64);
    const info = [text(name), uint32(dims.length), ...dims, uint32(type.id), uint64(offset)];
    const elements = shape.reduce((a, b) => a * b, 1);
    offset += Math.ceil(((elements / type.block) * type.bytes) / ALIGNMENT) * ALIGNMENT;
    return Buffer.concat(info);
  });
  const header = Buffer.concat([
    Buffer.from('GGUF'),
    uint32(3),
    uint64(tensors.length),
    uint64(pairs.length),
    ...pairs,
    ...infos,
  ]);
  return Buffer.concat([header, paddingFor(header.length)]);
}

/** A tensor's bytes, with the padding behind them. */
export function ggufTensorBytes(floats, type) {
  const bytes = Buffer.alloc((floats.length / type.block) * type.bytes);
  type.write(floats, new DataView(bytes.buffer, bytes.byteOffset, bytes.length));
  return Buffer.concat([bytes, paddingFor(bytes.length)]);
}
