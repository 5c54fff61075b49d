// A weight matrix in the order in which MatMul reads it.

#ifndef KVASM_KERNELS_PACKED_MATRIX_H_
#define KVASM_KERNELS_PACKED_MATRIX_H_

#include <cstddef>

#include "base/aligned_buffer.h"
#include "base/status.h"

namespace kvasm {

inline constexpr size_t kPanel = 16;

// [n_in, n_out], cut into panels of 16 outputs: panel p holds, for each input k, the
// weights of outputs 16p .. 16p+15 side by side. MatMul streams through it front to
// back, and keeps a panel's sums in registers. Outputs past n_out are zero.
class PackedMatrix {
 public:
  PackedMatrix() = default;

  static StatusOr<PackedMatrix> Create(size_t n_in, size_t n_out, const char* what);

  size_t n_in() const { return n_in_; }
  size_t n_out() const { return n_out_; }
  size_t panels() const { return (n_out_ + kPanel - 1) / kPanel; }
  bool empty() const { return data_.size() == 0; }
  size_t bytes() const { return data_.bytes(); }

  // [n_in, 16]
  const float* Panel(size_t panel) const {
    return data_.data() + panel * n_in_ * kPanel;
  }

  float At(size_t in, size_t out) const {
    return Panel(out / kPanel)[in * kPanel + out % kPanel];
  }

  // Places `count` elements of the row-major [n_in, n_out] matrix (GPT-2's Conv1D),
  // from element `first` on.
  void StoreConv1d(size_t first, const float* elements, size_t count);

  // The same for a row-major [n_out, n_in] matrix (an embedding, a Linear).
  void StoreLinear(size_t first, const float* elements, size_t count);

  // Gathers the n_in weights of one output: a row of an embedding.
  void GatherOutput(size_t out, float* row) const;

 private:
  size_t n_in_ = 0;
  size_t n_out_ = 0;
  AlignedBuffer<float> data_;
};

}  // namespace kvasm

#endif  // KVASM_KERNELS_PACKED_MATRIX_H_
