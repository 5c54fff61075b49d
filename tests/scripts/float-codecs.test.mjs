// The float types of a checkpoint.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { halfBits } from '../../scripts/fixtures/random-weights.mjs';
import { floatCodecs } from '../../scripts/lib/float-codecs.mjs';

test('16-bit floats survive reading and writing, and round to nearest', () => {
  const view = new DataView(new ArrayBuffer(2));
  for (const dtype of ['F16', 'BF16']) {
    const { read, write } = floatCodecs[dtype];
    for (let bits = 0; bits < 1 << 16; bits++) {
      view.setUint16(0, bits, true);
      const value = read(view, 0);
      if (Number.isNaN(value)) continue;
      write(view, 0, value);
      assert.equal(view.getUint16(0, true), bits);
    }
  }
  for (let i = 0; i < 20000; i++) {
    const value = Math.sin(i) * 10 ** ((i % 13) - 8);
    floatCodecs.F16.write(view, 0, value);
    assert.equal(view.getUint16(0, true), halfBits(value));
    // A bfloat16 is the upper half of a float32: rounding that by its integer is another way.
    const [upper] = new Uint32Array(Float32Array.of(value).buffer);
    floatCodecs.BF16.write(view, 0, Math.fround(value));
    assert.equal(view.getUint16(0, true), (upper + 0x7fff + ((upper >>> 16) & 1)) >>> 16);
  }
});
