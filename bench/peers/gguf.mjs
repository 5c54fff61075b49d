// A checkpoint as GGUF, for wllama.

import { open } from 'node:fs/promises';
import { makeVocabulary } from '../../scripts/fixtures/make-checkpoint.mjs';
import { q4Blocks, q8Blocks, transpose } from './quantise.mjs';

const ALIGNMENT = 32;
const VERSION = 3;

const asBytes = values => Buffer.from(values.buffer, values.byteOffset, values.byteLength);

/** By name: the type's number, bytes for each element, and how elements become bytes. */
const TENSOR_TYPES = {
  f32: { id: 0, bytesPerElement: 4, encode: asBytes },
  q8_0: { id: 8, bytesPerElement: 34 / 32, encode: q8Blocks },
  q4_0: { id: 2, bytesPerElement: 18 / 32, encode: q4Blocks },
};

/** Each precision: the file type's number, and the types of the embedding and of the layers' matrices. */
const PRECISIONS = {
  f32: { fileType: 0, embedding: 'f32', layers: 'f32' },
  q8_0: { fileType: 7, embedding: 'q8_0', layers: 'q8_0' },
  // As in published files, what is also the head keeps 8 bits.
  q4_0: { fileType: 2, embedding: 'q8_0', layers: 'q4_0' },
};

const u32 = value => {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32LE(value);
  return bytes;
};
const u64 = value => {
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64LE(BigInt(value));
  return bytes;
};
const text = value => Buffer.concat([u64(Buffer.byteLength(value)), Buffer.from(value)]);

/** Metadata values by type: its number, and the bytes of a value. */
const VALUE_TYPES = {
  u32: [4, u32],
  i32: [5, value => asBytes(Int32Array.of(value))],
  f32: [6, value => asBytes(Float32Array.of(value))],
  text: [8, text],
};

function entry(key, type, value) {
  const [id, encode] = VALUE_TYPES[type];
  if (!Array.isArray(value)) return Buffer.concat([text(key), u32(id), encode(value)]);
  const arrayId = 9;
  return Buffer.concat([text(key), u32(arrayId), u32(id), u64(value.length), ...value.map(encode)]);
}

function metadata(config, fileType) {
  const { tokens, merges } = makeVocabulary(config.vocab_size);
  const normal = 1;
  const control = 3;
  const end = config.vocab_size - 1;
  return [
    entry('general.architecture', 'text', 'gpt2'),
    entry('general.name', 'text', 'random weights'),
    entry('general.file_type', 'u32', fileType),
    entry('general.quantization_version', 'u32', 2),
    entry('gpt2.context_length', 'u32', config.n_positions),
    entry('gpt2.embedding_length', 'u32', config.n_embd),
    entry('gpt2.feed_forward_length', 'u32', config.n_inner ?? 4 * config.n_embd),
    entry('gpt2.block_count', 'u32', config.n_layer),
    entry('gpt2.attention.head_count', 'u32', config.n_head),
    entry('gpt2.attention.layer_norm_epsilon', 'f32', config.layer_norm_epsilon),
    entry('tokenizer.ggml.model', 'text', 'gpt2'),
    entry('tokenizer.ggml.pre', 'text', 'gpt-2'),
    entry('tokenizer.ggml.tokens', 'text', tokens),
    entry(
      'tokenizer.ggml.token_type',
      'i32',
      tokens.map((_, id) => (id === end ? control : normal)),
    ),
    entry(
      'tokenizer.ggml.merges',
      'text',
      merges.map(pair => pair.join(' ')),
    ),
    entry('tokenizer.ggml.bos_token_id', 'u32', end),
    entry('tokenizer.ggml.eos_token_id', 'u32', end),
  ];
}

/** The tensors in the file's order: GGUF's name, the checkpoint's, rows and columns as GGUF has them, and the type. */
function tensorPlan(config, { embedding, layers }) {
  const { n_embd: width, n_positions, vocab_size } = config;
  const inner = config.n_inner ?? 4 * width;
  const plan = [];
  const add = (name, source, rows, columns, type = 'f32', isTransposed = false) =>
    plan.push({ name, source, rows, columns, type, isTransposed });
  const addNorm = (name, source) => {
    for (const part of ['weight', 'bias']) add(`${name}.${part}`, `${source}.${part}`, 1, width);
  };
  const addConv1d = (name, source, inputs, outputs) => {
    add(`${name}.weight`, `${source}.weight`, outputs, inputs, layers, true);
    add(`${name}.bias`, `${source}.bias`, 1, outputs);
  };
  add('token_embd.weight', 'wte.weight', vocab_size, width, embedding);
  add('position_embd.weight', 'wpe.weight', n_positions, width);
  addNorm('output_norm', 'ln_f');
  for (let layer = 0; layer < config.n_layer; layer++) {
    addNorm(`blk.${layer}.attn_norm`, `h.${layer}.ln_1`);
    addConv1d(`blk.${layer}.attn_qkv`, `h.${layer}.attn.c_attn`, width, 3 * width);
    addConv1d(`blk.${layer}.attn_output`, `h.${layer}.attn.c_proj`, width, width);
    addNorm(`blk.${layer}.ffn_norm`, `h.${layer}.ln_2`);
    addConv1d(`blk.${layer}.ffn_up`, `h.${layer}.mlp.c_fc`, width, inner);
    addConv1d(`blk.${layer}.ffn_down`, `h.${layer}.mlp.c_proj`, inner, width);
  }
  return plan;
}

const padding = bytes => Buffer.alloc(-bytes & (ALIGNMENT - 1));

/** Writes one file. @param {'f32' | 'q8_0' | 'q4_0'} precision */
export async function writeGguf(path, checkpoint, precision) {
  const { fileType, ...types } = PRECISIONS[precision];
  const plan = tensorPlan(checkpoint.config, types);
  const entries = metadata(checkpoint.config, fileType);
  let offset = 0;
  const infos = plan.map(({ name, rows, columns, type }) => {
    const { id, bytesPerElement } = TENSOR_TYPES[type];
    const sizes = rows === 1 ? [columns] : [columns, rows];
    const info = [text(name), u32(sizes.length), ...sizes.map(u64), u32(id), u64(offset)];
    const bytes = rows * columns * bytesPerElement;
    offset += bytes + padding(bytes).length;
    return Buffer.concat(info);
  });
  const counts = [u32(VERSION), u64(infos.length), u64(entries.length)];
  const header = Buffer.concat([Buffer.from('GGUF'), ...counts, ...entries, ...infos]);
  const file = await open(path, 'w');
  try {
    await file.writeFile(Buffer.concat([header, padding(header.length)]));
    for (const { source, rows, columns, type, isTransposed } of plan) {
      const stored = await checkpoint.tensor(source);
      const values = isTransposed ? transpose(stored, columns, rows) : stored;
      const bytes = TENSOR_TYPES[type].encode(values);
      await file.writeFile(Buffer.concat([bytes, padding(bytes.length)]));
    }
  } finally {
    await file.close();
  }
}
