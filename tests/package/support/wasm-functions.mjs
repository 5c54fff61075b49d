// Reads what the code section of a WebAssembly module says about its functions' local variables.
// The format: https://webassembly.github.io/spec/core/binary/modules.html

const codeSection = 10;
const v128 = 0x7b;
/** f32x4.relaxed_madd: the prefix of vector instructions, and 0x105 as LEB128. */
const relaxedMadd = [0xfd, 0x85, 0x02];

/**
 * How many of a module's functions have a local variable of the type v128, which only the instructions for vectors of 128
 * bits can set and use.
 *
 * @param {Uint8Array} bytes
 * @returns {{ vector: number, total: number }}
 */
export function vectorFunctions(bytes) {
  const reader = new Reader(codeOf(bytes));
  const total = reader.integer();
  let vector = 0;
  for (let i = 0; i < total; i++) {
    const end = reader.integer() + reader.at;
    const groups = reader.integer();
    let hasVector = false;
    for (let group = 0; group < groups; group++) {
      reader.integer();
      hasVector = reader.byte() === v128 || hasVector;
    }
    if (hasVector) vector++;
    reader.at = end;
  }
  return { vector, total };
}

/**
 * How many instructions of a module multiply and add in one, by their bytes: now and then, others look the same.
 *
 * @param {Uint8Array} bytes
 */
export function relaxedMultiplyAdds(bytes) {
  const code = codeOf(bytes);
  return code.filter((_, at) => relaxedMadd.every((byte, i) => code[at + i] === byte)).length;
}

/** The contents of the code section. */
function codeOf(bytes) {
  const reader = new Reader(bytes);
  reader.at = 8;
  while (reader.at < bytes.length) {
    const section = reader.byte();
    const end = reader.integer() + reader.at;
    if (section === codeSection) return bytes.subarray(reader.at, end);
    reader.at = end;
  }
  throw new Error('the module has no code');
}

class Reader {
  at = 0;
  #bytes;

  constructor(bytes) {
    this.#bytes = bytes;
  }

  byte() {
    return this.#bytes[this.at++];
  }

  /** An unsigned LEB128. */
  integer() {
    let value = 0;
    for (let shift = 0; ; shift += 7) {
      const byte = this.byte();
      value += (byte & 0x7f) * 2 ** shift;
      if (byte < 0x80) return value;
    }
  }
}
