import { open, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { makeHeader, readHeader } from '../../scripts/lib/safetensors.mjs';

export const shardNames = [1, 2].map(n => `model-0000${n}-of-00002.safetensors`);
export const indexName = 'model.safetensors.index.json';

/** Splits a checkpoint in two, and writes the index. */
export async function writeShards(path, to) {
  const file = await open(path);
  const { tensors } = await readHeader(file);
  const bytes = await readFile(path);
  await file.close();
  const weight_map = {};
  const half = Math.ceil(tensors.length / 2);
  for (const [i, part] of [tensors.slice(0, half), tensors.slice(half)].entries()) {
    const name = shardNames[i];
    for (const tensor of part) weight_map[tensor.name] = name;
    const data = part.map(({ begin, bytes: size }) => bytes.subarray(begin, begin + size));
    await writeFile(join(to, name), Buffer.concat([makeHeader({ format: 'pt' }, part), ...data]));
  }
  const index = { metadata: { total_size: bytes.length }, weight_map };
  await writeFile(join(to, indexName), JSON.stringify(index));
}
