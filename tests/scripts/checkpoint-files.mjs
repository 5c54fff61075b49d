// Checkpoints as the tests take them apart and put them together.

import { open, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { floatCodecs } from '../../scripts/lib/float-codecs.mjs';
import { makeHeader, readHeader } from '../../scripts/lib/safetensors.mjs';

/** The tensors of a checkpoint by name, in the file's order, each with its `data`. */
export async function readTensors(dir) {
  const file = await open(join(dir, 'model.safetensors'));
  try {
    const { metadata, tensors } = await readHeader(file);
    for (const tensor of tensors) {
      tensor.data = Buffer.alloc(tensor.bytes);
      await file.read(tensor.data, 0, tensor.bytes, tensor.begin);
    }
    return { metadata, tensors: new Map(tensors.map(tensor => [tensor.name, tensor])) };
  } finally {
    await file.close();
  }
}

/** Writes model.safetensors with these tensors, each with its `data`. */
export async function writeTensors(dir, metadata, tensors) {
  const list = [...tensors];
  const header = makeHeader(metadata, list);
  await writeFile(
    join(dir, 'model.safetensors'),
    Buffer.concat([header, ...list.map(({ data }) => data)]),
  );
}

/** A tensor's elements. */
export function numbers({ data, dtype }) {
  const { size, read } = floatCodecs[dtype];
  const view = new DataView(data.buffer, data.byteOffset, data.length);
  return Array.from({ length: data.length / size }, (_, i) => read(view, i * size));
}
