// What a weights file turns into as it streams by: a list of tensors, then their
// elements.

#ifndef KVASM_FORMATS_TENSOR_SINK_H_
#define KVASM_FORMATS_TENSOR_SINK_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"

namespace kvasm {

struct TensorInfo {
  std::string name;
  std::string dtype;            // As the file says: "F32", "BF16", "Q8_0", ...
  std::vector<uint64_t> shape;  // The last one's elements lie side by side.
};

class TensorSink {
 public:
  virtual ~TensorSink() = default;

  // Once for each file, before its elements. The sink says which tensors it wants; the
  // others' bytes are skipped. Returns an error to refuse the file.
  virtual Status OnTensors(const std::vector<TensorInfo>& tensors,
                           std::vector<bool>* wanted) = 0;

  // Elements first .. first+count-1 of a wanted tensor of the current file, in
  // row-major order. Tensors come one after the other, each front to back.
  virtual void OnElements(size_t tensor, uint64_t first, const float* elements,
                          size_t count) = 0;
};

}  // namespace kvasm

#endif  // KVASM_FORMATS_TENSOR_SINK_H_
