#!/usr/bin/env node

// Makes a grouped-query GPT-2 out of a multi-head one, by averaging the key and value heads of each group
// (Ainslie et al. 2023, "GQA"). The result needs some training to be as good as the original; what it
// gives at once is a checkpoint whose cache is smaller.

import { realpathSync } from 'node:fs';
import {
  copyFile,
  mkdir,
  open,
  readdir,
  readFile,
  rename,
  rm,
  stat,
  writeFile,
} from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { floatCodecs } from './lib/float-codecs.mjs';
import { makeHeader, readHeader } from './lib/safetensors.mjs';

const USAGE = `Usage: convert-to-gqa.mjs SOURCE DEST --n-kv-head N

Reads the GPT-2 checkpoint in the directory SOURCE, and writes it into DEST with N key and value heads, each the
mean of n_head / N of them. Everything else stays, the float type as well. SOURCE's other files are copied but
for weights in other formats.
`;

const PIECE_BYTES = 1 << 20;
const ATTENTION = /^(?:transformer\.)?h\.(\d+)\.attn\.c_attn\.(weight|bias)$/;
// They hold the model as it was.
const OTHER_WEIGHTS = /\.(safetensors|bin|pt|pth|h5|msgpack|ot|onnx|gguf|tflite)$|\.index\.json$/i;

async function readConfig(source) {
  let config;
  try {
    config = JSON.parse(await readFile(join(source, 'config.json'), 'utf8'));
  } catch (error) {
    const reason = error.code === 'ENOENT' ? 'is missing' : `cannot be read (${error.message})`;
    throw new Error(`${join(source, 'config.json')} ${reason}`);
  }
  for (const key of ['n_layer', 'n_head', 'n_embd']) {
    if (!Number.isSafeInteger(config?.[key]) || config[key] < 1) {
      throw new Error(`config.json: ${key} is ${config?.[key]}, not a positive integer`);
    }
  }
  if (config.n_embd % config.n_head !== 0) {
    throw new Error(`config.json: n_head ${config.n_head} does not divide n_embd ${config.n_embd}`);
  }
  return config;
}

function checkGroups({ n_head: nHead, n_kv_head: nKvHead }, wanted) {
  if (nKvHead !== undefined && nKvHead !== null && nKvHead !== nHead) {
    throw new Error(`the checkpoint has grouped heads already (n_kv_head is ${nKvHead})`);
  }
  if (!Number.isSafeInteger(wanted) || wanted < 1) {
    throw new Error(`--n-kv-head: ${wanted} is not a positive integer`);
  }
  if (nHead % wanted !== 0) {
    throw new Error(`--n-kv-head: ${wanted} does not divide n_head, which is ${nHead}`);
  }
}

/** What each tensor becomes: { name, dtype, shape, bytes, from }, `from` being the tensor as it is. */
function planTensors(tensors, config, nKvHead) {
  const { n_layer: nLayer, n_head: nHead, n_embd: nEmbd } = config;
  const columns = (nHead + 2 * nKvHead) * (nEmbd / nHead);
  const found = new Set();
  const plan = tensors.map(from => {
    const [match, layer, kind] = ATTENTION.exec(from.name) ?? [];
    if (match === undefined) return { ...from, from };
    const { name, dtype } = from;
    found.add(`h.${Number(layer)}.attn.c_attn.${kind}`);
    if (!Object.hasOwn(floatCodecs, dtype)) {
      throw new Error(`${name}: ${dtype} is not one of ${Object.keys(floatCodecs).join(', ')}`);
    }
    const rows = kind === 'weight' ? [nEmbd] : [];
    const expected = [...rows, 3 * nEmbd];
    const elements = expected.reduce((product, n) => product * n);
    if (`${from.shape}` !== `${expected}` || from.bytes !== elements * floatCodecs[dtype].size) {
      throw new Error(`${name}: its shape is [${from.shape}], not [${expected}]`);
    }
    const bytes = (from.bytes / (3 * nEmbd)) * columns;
    return { name, dtype, shape: [...rows, columns], bytes, from };
  });
  for (let layer = 0; layer < nLayer; layer++) {
    for (const kind of ['weight', 'bias']) {
      const name = `h.${layer}.attn.c_attn.${kind}`;
      if (!found.has(name)) throw new Error(`model.safetensors: ${name} is missing`);
    }
  }
  return plan;
}

/** A function from the bytes of some rows [q, k, v] of c_attn to those of [q, pooled k, pooled v]. */
function rowPooler(dtype, { n_head: nHead, n_embd: nEmbd }, nKvHead) {
  const { size, read, write } = floatCodecs[dtype];
  const headDim = nEmbd / nHead;
  const group = nHead / nKvHead;
  const [queryBytes, rowBytes] = [nEmbd * size, 3 * nEmbd * size];
  const pooledBytes = (nHead + 2 * nKvHead) * headDim * size;

  return bytes => {
    const rows = bytes.length / rowBytes;
    const pooled = Buffer.alloc(rows * pooledBytes);
    const from = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
    const to = new DataView(pooled.buffer, pooled.byteOffset, pooled.length);
    for (let row = 0; row < rows; row++) {
      const [rowAt, pooledAt] = [row * rowBytes, row * pooledBytes];
      bytes.copy(pooled, pooledAt, rowAt, rowAt + queryBytes);
      // Behind the queries lie nHead heads of keys, then as many of values: 2 nKvHead groups.
      for (let i = 0; i < 2 * nKvHead * headDim; i++) {
        const first = Math.floor(i / headDim) * group * headDim + (i % headDim);
        const value = member => read(from, rowAt + queryBytes + (first + member * headDim) * size);
        let sum = value(0);
        for (let member = 1; member < group; member++) sum += value(member);
        write(to, pooledAt + queryBytes + i * size, sum / group);
      }
    }
    return pooled;
  };
}

/** Writes the planned tensors, piece by piece. */
async function writeTensors(source, path, metadata, plan, config, nKvHead) {
  const dest = await open(path, 'w');
  try {
    await dest.writeFile(makeHeader(metadata, plan));
    for (const { name, dtype, from } of plan) {
      const isPooled = ATTENTION.test(name);
      const pool = isPooled ? rowPooler(dtype, config, nKvHead) : bytes => bytes;
      const rowBytes = isPooled ? 3 * config.n_embd * floatCodecs[dtype].size : 1;
      const piece = Buffer.alloc(Math.max(1, Math.floor(PIECE_BYTES / rowBytes)) * rowBytes);
      for (let done = 0; done < from.bytes; ) {
        const wanted = Math.min(piece.length, from.bytes - done);
        const { bytesRead } = await source.read(piece, 0, wanted, from.begin + done);
        if (bytesRead < wanted) throw new Error(`model.safetensors ends inside ${name}`);
        await dest.writeFile(pool(piece.subarray(0, wanted)));
        done += wanted;
      }
    }
  } finally {
    await dest.close();
  }
}

async function copyOthers(source, dest) {
  for (const name of await readdir(source)) {
    if (name === 'config.json' || OTHER_WEIGHTS.test(name)) continue;
    if (!(await stat(join(source, name))).isFile()) continue;
    await copyFile(join(source, name), join(dest, name));
  }
}

/**
 * Converts the checkpoint in `source` into one with `nKvHead` key and value heads in `dest`, which is created.
 * Throws an Error whose message is one line when it cannot be done; nothing is written then but after a
 * failure to read or write.
 *
 * @param {string} source @param {string} dest @param {number} nKvHead
 * @returns {Promise<{ config: object, pooled: number }>} the new config, and how many tensors were pooled
 */
export async function convertToGqa(source, dest, nKvHead) {
  const config = await readConfig(source);
  checkGroups(config, nKvHead);
  const weightsPath = join(source, 'model.safetensors');
  const weights = await open(weightsPath).catch(error => {
    const reason = error.code === 'ENOENT' ? 'is missing' : `cannot be opened (${error.code})`;
    throw new Error(`${weightsPath} ${reason}`);
  });
  try {
    const { metadata, tensors } = await readHeader(weights);
    const plan = planTensors(tensors, config, nKvHead);
    await mkdir(dest, { recursive: true });
    if (realpathSync(source) === realpathSync(dest)) {
      throw new Error(`SOURCE and DEST are the same directory, ${resolve(dest)}`);
    }
    // The weights get their name once they are whole, so an interrupted run leaves nothing to trip on.
    const partial = join(dest, 'model.safetensors.partial');
    try {
      await writeTensors(weights, partial, metadata, plan, config, nKvHead);
      await copyOthers(source, dest);
      const converted = { ...config, n_kv_head: nKvHead };
      await writeFile(join(dest, 'config.json'), `${JSON.stringify(converted, null, 2)}\n`);
      await rename(partial, join(dest, 'model.safetensors'));
      return { config: converted, pooled: plan.filter(({ name }) => ATTENTION.test(name)).length };
    } finally {
      await rm(partial, { force: true });
    }
  } finally {
    await weights.close();
  }
}

async function main() {
  try {
    const { values, positionals } = parseArgs({
      options: { 'n-kv-head': { type: 'string' }, help: { type: 'boolean' } },
      allowPositionals: true,
    });
    if (values.help) {
      process.stdout.write(USAGE);
      return;
    }
    const given = values['n-kv-head'];
    if (positionals.length !== 2 || given === undefined) {
      throw new Error('give SOURCE, DEST and --n-kv-head N (--help says more)');
    }
    // Number('') is 0, which would call an empty shell variable a number.
    const { config, pooled } = await convertToGqa(...positionals, Number(given || NaN));
    console.log(
      `${positionals[1]}: ${pooled} tensors from ${config.n_head} to ${config.n_kv_head} key and value heads`,
    );
  } catch (error) {
    console.error(`convert-to-gqa: ${error.message}`);
    process.exitCode = 1;
  }
}

if (process.argv[1] && realpathSync(process.argv[1]) === fileURLToPath(import.meta.url)) {
  await main();
}
