#ifndef KVASM_FORMATS_SAFETENSORS_HEADER_H_
#define KVASM_FORMATS_SAFETENSORS_HEADER_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "formats/tensor_sink.h"

namespace kvasm {

// One entry of the JSON header.
struct SafetensorsEntry {
  TensorInfo info;
  uint64_t begin = 0;  // Byte offsets from the end of the header.
  uint64_t end = 0;
  size_t element_bytes = 0;
};

// Parses and checks the JSON header: entries in file order, which cover [0, last end)
// without gaps or overlaps, each as long as its dtype and shape say.
StatusOr<std::vector<SafetensorsEntry>> ParseSafetensorsHeader(std::string_view json);

}  // namespace kvasm

#endif  // KVASM_FORMATS_SAFETENSORS_HEADER_H_
