// A checkpoint as an ONNX graph with past and present keys and values, for onnxruntime-web.

import { writeFile } from 'node:fs/promises';
import { int8Columns, transpose } from './onnx-matrices.mjs';

const OPSET = 20;
const IR_VERSION = 9;
// ONNX's numbers of element and attribute types.
const ELEMENT = { float: 1, int8: 3, int64: 7 };
const ATTRIBUTE = { float: 1, int: 2, string: 3, ints: 7 };
const LAST = 2 ** 40;

const elementOf = new Map([
  [Float32Array, ELEMENT.float],
  [Int8Array, ELEMENT.int8],
  [BigInt64Array, ELEMENT.int64],
]);

function attribute(name, value) {
  if (Array.isArray(value)) return { name, ints: value, type: ATTRIBUTE.ints };
  if (typeof value === 'string') return { name, s: Buffer.from(value), type: ATTRIBUTE.string };
  if (Number.isInteger(value)) return { name, i: value, type: ATTRIBUTE.int };
  return { name, f: value, type: ATTRIBUTE.float };
}

/** Collects nodes and initializers; each call returns the name of what it made. */
class Graph {
  node = [];
  initializer = [];

  data(name, values, dims) {
    const rawData = new Uint8Array(values.buffer, values.byteOffset, values.byteLength);
    this.initializer.push({ name, dims, dataType: elementOf.get(values.constructor), rawData });
    return name;
  }

  ints(name, values, dims = [values.length]) {
    return this.data(name, BigInt64Array.from(values, BigInt), dims);
  }

  op(opType, input, output, attributes = {}) {
    const outputs = [output].flat();
    const list = Object.entries(attributes).map(([name, value]) => attribute(name, value));
    this.node.push({ opType, input, output: outputs, attribute: list, name: outputs[0] });
    return outputs[0];
  }
}

/** By precision: adds x [.., inputs] times `weights` [inputs, outputs] to the graph. */
const PRODUCTS = {
  fp32(graph, x, weights, inputs, outputs, out) {
    return graph.op('MatMul', [x, graph.data(`${out}_w`, weights, [inputs, outputs])], out);
  },

  /** Activations are quantised at run time, by tensor; weights by column. */
  int8(graph, x, weights, inputs, outputs, out) {
    const { bytes, scales } = int8Columns(weights, inputs, outputs);
    graph.data(`${out}_w`, bytes, [inputs, outputs]);
    graph.data(`${out}_s`, scales, [outputs]);
    graph.data(`${out}_z`, Int8Array.of(0), []);
    graph.op('DynamicQuantizeLinear', [x], [`${out}_xq`, `${out}_xs`, `${out}_xz`]);
    const operands = [`${out}_xq`, `${out}_w`, `${out}_xz`, `${out}_z`];
    graph.op('MatMulInteger', operands, `${out}_i`);
    graph.op('Cast', [`${out}_i`], `${out}_f`, { to: ELEMENT.float });
    graph.op('Mul', [`${out}_xs`, `${out}_s`], `${out}_c`);
    return graph.op('Mul', [`${out}_f`, `${out}_c`], out);
  },
};

/** Adds what maps the ids and the past to positions, the embeddings and the mask. */
function addInputs(graph) {
  graph.ints('zero', [0], []);
  graph.ints('one', [1], []);
  graph.ints('two', [2], []);
  graph.ints('axis1', [1]);
  graph.data('minus_infinity', Float32Array.of(-1e9), []);
  graph.data('no_mask', Float32Array.of(0), []);
  graph.op('Shape', ['input_ids'], 'ids_shape');
  graph.op('Gather', ['ids_shape', 'one'], 'new_length');
  graph.op('Shape', ['past_k.0'], 'past_shape');
  graph.op('Gather', ['past_shape', 'two'], 'past_length');
  graph.op('Add', ['new_length', 'past_length'], 'length');
  graph.op('Range', ['past_length', 'length', 'one'], 'positions');
  graph.op('Gather', ['wte', 'input_ids'], 'token_rows');
  graph.op('Gather', ['wpe', 'positions'], 'position_rows');
  graph.op('Unsqueeze', ['positions', 'axis1'], 'query_positions');
  graph.op('Range', ['zero', 'length', 'one'], 'key_positions');
  graph.op('Greater', ['key_positions', 'query_positions'], 'is_later');
  graph.op('Where', ['is_later', 'minus_infinity', 'no_mask'], 'mask');
  return graph.op('Add', ['token_rows', 'position_rows'], 'embedded');
}

function addAttention(graph, layer) {
  const p = `h${layer}_`;
  graph.op('Split', [`${p}qkv`], [`${p}q0`, `${p}k0`, `${p}v0`], { axis: 2, num_outputs: 3 });
  for (const part of 'qkv') {
    graph.op('Reshape', [`${p}${part}0`, 'by_head'], `${p}${part}1`);
    graph.op('Transpose', [`${p}${part}1`], `${p}${part}`, { perm: [0, 2, 1, 3] });
  }
  for (const part of 'kv') {
    const operands = [`past_${part}.${layer}`, `${p}${part}`];
    graph.op('Concat', operands, `present_${part}.${layer}`, { axis: 2 });
  }
  graph.op('Transpose', [`present_k.${layer}`], `${p}kt`, { perm: [0, 1, 3, 2] });
  graph.op('MatMul', [`${p}q`, `${p}kt`], `${p}s0`);
  graph.op('Mul', [`${p}s0`, 'scale'], `${p}s1`);
  graph.op('Add', [`${p}s1`, 'mask'], `${p}s2`);
  graph.op('Softmax', [`${p}s2`], `${p}p`, { axis: -1 });
  graph.op('MatMul', [`${p}p`, `present_v.${layer}`], `${p}a0`);
  graph.op('Transpose', [`${p}a0`], `${p}a1`, { perm: [0, 2, 1, 3] });
  return graph.op('Reshape', [`${p}a1`, 'joined'], `${p}a`);
}

async function build(checkpoint, precision) {
  const { n_layer, n_head, n_embd: width, n_positions, vocab_size, ...rest } = checkpoint.config;
  const inner = rest.n_inner ?? 4 * width;
  const graph = new Graph();
  const headDim = width / n_head;
  const bias = async (x, name, size, out) =>
    graph.op('Add', [x, graph.data(name, await checkpoint.tensor(name), [size])], out);
  const product = PRODUCTS[precision];
  const conv1d = async (x, name, inputs, outputs, out) => {
    const weights = await checkpoint.tensor(`${name}.weight`);
    const y = product(graph, x, weights, inputs, outputs, `${out}_mm`);
    return bias(y, `${name}.bias`, outputs, out);
  };
  const norm = async (x, name, out) => {
    const parts = [];
    for (const part of [`${name}.weight`, `${name}.bias`]) {
      parts.push(graph.data(part, await checkpoint.tensor(part), [width]));
    }
    const attributes = { axis: -1, epsilon: rest.layer_norm_epsilon };
    return graph.op('LayerNormalization', [x, ...parts], out, attributes);
  };

  const wte = await checkpoint.tensor('wte.weight');
  graph.data('wte', wte, [vocab_size, width]);
  graph.data('wpe', await checkpoint.tensor('wpe.weight'), [n_positions, width]);
  graph.ints('by_head', [1, -1, n_head, headDim]);
  graph.ints('joined', [1, -1, width]);
  graph.data('scale', Float32Array.of(headDim ** -0.5), []);
  let x = addInputs(graph);
  for (let layer = 0; layer < n_layer; layer++) {
    const [p, name] = [`h${layer}_`, `h.${layer}`];
    await conv1d(
      await norm(x, `${name}.ln_1`, `${p}n1`),
      `${name}.attn.c_attn`,
      width,
      3 * width,
      `${p}qkv`,
    );
    const mixed = addAttention(graph, layer);
    x = graph.op(
      'Add',
      [x, await conv1d(mixed, `${name}.attn.c_proj`, width, width, `${p}o`)],
      `${p}x1`,
    );
    const up = await conv1d(
      await norm(x, `${name}.ln_2`, `${p}n2`),
      `${name}.mlp.c_fc`,
      width,
      inner,
      `${p}u`,
    );
    const active = graph.op('Gelu', [up], `${p}g`, { approximate: 'tanh' });
    x = graph.op(
      'Add',
      [x, await conv1d(active, `${name}.mlp.c_proj`, inner, width, `${p}d`)],
      `${p}x2`,
    );
  }
  // The head is for the last position only.
  const [from, to] = [graph.ints('from', [-1]), graph.ints('to', [LAST])];
  const last = await norm(graph.op('Slice', [x, from, to, 'axis1'], 'last'), 'ln_f', 'final');
  product(graph, last, transpose(wte, vocab_size, width), width, vocab_size, 'logits');
  return { graph, n_layer, n_head, headDim, vocab_size };
}

function valueInfo(name, elemType, dims) {
  const dim = dims.map(size =>
    typeof size === 'string' ? { dimParam: size } : { dimValue: size },
  );
  return { name, type: { tensorType: { elemType, shape: { dim } } } };
}

/**
 * Writes one file. Inputs: `input_ids` int64 [1, n], `past_k.i` and `past_v.i` float [1, heads, p, head dim]; outputs:
 * `logits` float [1, 1, vocabulary] of the last position, `present_k.i` and `present_v.i` with n more positions.
 *
 * @param {'fp32' | 'int8'} precision
 * @param {object} onnx the module onnx-proto's `onnx`
 */
export async function writeOnnx(path, checkpoint, precision, onnx) {
  const { graph, n_layer, n_head, headDim, vocab_size } = await build(checkpoint, precision);
  const input = [valueInfo('input_ids', ELEMENT.int64, [1, 'new'])];
  const output = [valueInfo('logits', ELEMENT.float, [1, 1, vocab_size])];
  for (let layer = 0; layer < n_layer; layer++) {
    for (const part of 'kv') {
      const info = (when, length) =>
        valueInfo(`${when}_${part}.${layer}`, ELEMENT.float, [1, n_head, length, headDim]);
      input.push(info('past', 'past'));
      output.push(info('present', 'present'));
    }
  }
  const model = {
    irVersion: IR_VERSION,
    producerName: 'kvasm bench',
    opsetImport: [{ domain: '', version: OPSET }],
    graph: { ...graph, name: 'gpt2', input, output },
  };
  await writeFile(path, onnx.ModelProto.encode(onnx.ModelProto.create(model)).finish());
}
