// 16-bit floats to float, exactly, subnormals included.

#ifndef KVASM_FORMATS_FLOAT16_H_
#define KVASM_FORMATS_FLOAT16_H_

#include <bit>
#include <cstdint>

namespace kvasm {

// IEEE 754 binary16.
inline float Float16ToFloat(uint16_t bits) {
  const uint32_t sign = static_cast<uint32_t>(bits & 0x8000u) << 16;
  const uint32_t exponent = (bits >> 10) & 0x1Fu;
  const uint32_t fraction = bits & 0x3FFu;
  if (exponent == 0) {
    // Zero or subnormal: fraction * 2^-24.
    const float magnitude = static_cast<float>(fraction) * 0x1p-24f;
    return std::bit_cast<float>(std::bit_cast<uint32_t>(magnitude) | sign);
  }
  const uint32_t wide_exponent = exponent == 0x1Fu ? 0xFFu : exponent + (127 - 15);
  return std::bit_cast<float>(sign | wide_exponent << 23 | fraction << 13);
}

// The upper half of a float.
inline float BFloat16ToFloat(uint16_t bits) {
  return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
}

}  // namespace kvasm

#endif  // KVASM_FORMATS_FLOAT16_H_
