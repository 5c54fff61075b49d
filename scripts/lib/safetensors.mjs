// The header of a safetensors file: what is in it, and writing one for what is to be.

const LENGTH_BYTES = 8;
// What the format's own implementation allows.
const MAX_HEADER_BYTES = 100e6;

async function readExactly(file, length, position) {
  const bytes = Buffer.alloc(length);
  const { bytesRead } = await file.read(bytes, 0, length, position);
  if (bytesRead < length) throw new Error('model.safetensors ends inside its header');
  return bytes;
}

/**
 * Reads the header of an open file. Throws an Error in one line where the file cannot be used.
 * @returns {Promise<{ metadata: object | undefined, tensors: { name, dtype, shape, begin, bytes }[] }>}
 *   tensors in the order of their bytes, `begin` counted from the start of the file
 */
export async function readHeader(file) {
  const length = Number((await readExactly(file, LENGTH_BYTES, 0)).readBigUInt64LE());
  if (length > MAX_HEADER_BYTES) throw new Error('model.safetensors: not a safetensors file');
  const text = (await readExactly(file, length, LENGTH_BYTES)).toString();
  let entries;
  try {
    entries = JSON.parse(text);
  } catch {
    throw new Error('model.safetensors: its header is not JSON');
  }
  const { __metadata__: metadata, ...rest } = entries;
  const dataBegin = LENGTH_BYTES + length;
  const { size } = await file.stat();
  const tensors = Object.entries(rest).map(([name, { dtype, shape, data_offsets }]) => {
    const [begin, end] = data_offsets ?? [];
    if (!(begin >= 0 && end >= begin) || !Array.isArray(shape)) {
      throw new Error(`model.safetensors: the entry of ${name} is malformed`);
    }
    if (dataBegin + end > size)
      throw new Error(`model.safetensors ends before ${name} is complete`);
    return { name, dtype, shape, begin: dataBegin + begin, bytes: end - begin };
  });
  tensors.sort((a, b) => a.begin - b.begin);
  return { metadata, tensors };
}

/** The length word and header of a file that holds these { name, dtype, shape, bytes } in this order. */
export function makeHeader(metadata, tensors) {
  const entries = metadata === undefined ? {} : { __metadata__: metadata };
  let offset = 0;
  for (const { name, dtype, shape, bytes } of tensors) {
    entries[name] = { dtype, shape, data_offsets: [offset, offset + bytes] };
    offset += bytes;
  }
  const text = Buffer.from(JSON.stringify(entries));
  // Readers map the tensors into memory, where they want to be aligned.
  const padded = Buffer.alloc(Math.ceil(text.length / 8) * 8, ' ');
  text.copy(padded);
  const length = Buffer.alloc(LENGTH_BYTES);
  length.writeBigUInt64LE(BigInt(padded.length));
  return Buffer.concat([length, padded]);
}
