// The float types of a checkpoint, as bytes to numbers and back.

/** Reads and writes IEEE-like floats of 16 bits with that many bits of exponent and mantissa. */
function shortFloat(exponentBits, mantissaBits) {
  const bias = 2 ** (exponentBits - 1) - 1;
  const specials = 2 ** exponentBits - 1;
  const unit = 2 ** mantissaBits;
  // Numbers below 2^lowest are subnormal, and share the spacing of the smallest normal ones.
  const lowest = 1 - bias;

  const numberOf = bits => {
    const sign = bits & 0x8000 ? -1 : 1;
    const exponent = (bits >> mantissaBits) & specials;
    const mantissa = bits & (unit - 1);
    if (exponent === specials) return mantissa === 0 ? sign * Infinity : NaN;
    if (exponent === 0) return sign * mantissa * 2 ** (lowest - mantissaBits);
    return sign * (unit + mantissa) * 2 ** (exponent - bias - mantissaBits);
  };

  /** To nearest, ties to even. */
  const bitsOf = number => {
    if (Number.isNaN(number)) return (specials << mantissaBits) | (unit >> 1);
    const sign = number < 0 || Object.is(number, -0) ? 0x8000 : 0;
    const magnitude = Math.abs(number);
    if (magnitude === Infinity) return sign | (specials << mantissaBits);
    const exponent = magnitude < 2 ** lowest ? lowest : Math.floor(Math.log2(magnitude));
    const steps = magnitude / 2 ** (exponent - mantissaBits);
    let rounded = Math.floor(steps);
    const rest = steps - rounded;
    if (rest > 0.5 || (rest === 0.5 && rounded % 2 === 1)) rounded += 1;
    // A mantissa that rounds up carries into the exponent by itself, at the top into infinity.
    return sign | Math.min((exponent - lowest) * unit + rounded, specials << mantissaBits);
  };

  return {
    size: 2,
    read: (view, at) => numberOf(view.getUint16(at, true)),
    write: (view, at, number) => view.setUint16(at, bitsOf(number), true),
  };
}

/** By safetensors' name: bytes of an element, and how to read and write one in a DataView. */
export const floatCodecs = {
  F32: {
    size: 4,
    read: (view, at) => view.getFloat32(at, true),
    write: (view, at, number) => view.setFloat32(at, number, true),
  },
  F16: shortFloat(5, 10),
  BF16: shortFloat(8, 7),
};
