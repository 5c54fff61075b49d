// tests/golden: models with PyTorch's logits. See the README there for the format.

import { readdir, readFile } from 'node:fs/promises';

const directory = new URL('../golden/', import.meta.url);

export async function goldenNames() {
  const entries = await readdir(directory, { withFileTypes: true });
  return entries.filter(entry => entry.isDirectory()).map(entry => entry.name);
}

export async function readGolden(name) {
  const file = path => readFile(new URL(`${name}/${path}`, directory));
  const bytes = await file('expected.bin');
  const buffer = bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length);
  const ints = new Int32Array(buffer);
  const floats = new Float32Array(buffer);
  const prompts = [];
  let at = 1;
  const take = (words, count) => {
    at += count;
    return words.subarray(at - count, at);
  };
  for (let p = 0; p < ints[0]; p++) {
    const [idCount, greedyCount, vocabSize] = take(ints, 3);
    const ids = take(ints, idCount);
    const greedy = take(ints, greedyCount);
    const logits = take(floats, idCount * vocabSize);
    prompts.push({ ids, greedy, vocabSize, logits });
  }
  return {
    config: (await file('config.json')).toString(),
    weights: await file('model.safetensors'),
    prompts,
  };
}
