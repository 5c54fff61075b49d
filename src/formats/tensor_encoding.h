// How files store numbers: floats of 32 and 16 bits, and ggml's quantised blocks.

#ifndef KVASM_FORMATS_TENSOR_ENCODING_H_
#define KVASM_FORMATS_TENSOR_ENCODING_H_

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace kvasm {

// Elements are stored in blocks: one element each for floats, 32 or 256 side by side in
// a row, with their scales, where quantised.
struct TensorEncoding {
  const char* name;  // "F32", "Q8_0", ...
  size_t block_elements;
  size_t block_bytes;
  // [blocks * block_bytes] -> [blocks * block_elements]. The bytes need no alignment.
  void (*decode)(const uint8_t* bytes, size_t blocks, float* elements);
};

inline constexpr size_t kMaxBlockElements = 256;
inline constexpr size_t kMaxBlockBytes = 210;

// F32, F16, BF16; null for every other dtype of safetensors.
const TensorEncoding* SafetensorsEncoding(std::string_view dtype);

// F32, F16, BF16, Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, Q6_K (which files of other types hold,
// too, for the head); null for every other ggml_type.
const TensorEncoding* GgufEncoding(uint32_t type);

// The name of a ggml_type, for messages; null for one that is not known here.
const char* GgufTypeName(uint32_t type);

}  // namespace kvasm

#endif  // KVASM_FORMATS_TENSOR_ENCODING_H_
