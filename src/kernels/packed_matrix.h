// A weight matrix in the order in which MatMul reads it.

#ifndef KVASM_KERNELS_PACKED_MATRIX_H_
#define KVASM_KERNELS_PACKED_MATRIX_H_

#include <cstddef>
#include <cstdint>

#include "base/aligned_buffer.h"
#include "base/status.h"
#include "kernels/quantize.h"
#include "kernels/weight_dtype.h"

namespace kvasm {

inline constexpr size_t kPanel = 16;

// The bytes of a panel's group of 32 inputs, when quantised. First the integers, four
// inputs of an output side by side, so that a dot product adds up one output a lane:
//   kQ8: [8 quads][16 outputs][4 inputs] int8
//   kQ4: [4 pairs of quads][16 outputs][4 inputs] a byte each, the even quad's value +
//   8
//        in the low half, the odd quad's in the high half
// then for kQ8 minus the sum of each output's integers, [16] int16, and the scales,
// [16] bfloat16.
inline constexpr size_t kQ8SumsOffset = kQuantGroup * kPanel;
inline constexpr size_t kQ8ScalesOffset = kQ8SumsOffset + kPanel * sizeof(int16_t);
inline constexpr size_t kQ8GroupBytes = kQ8ScalesOffset + kPanel * sizeof(uint16_t);
inline constexpr size_t kQ4ScalesOffset = kQuantGroup * kPanel / 2;
inline constexpr size_t kQ4GroupBytes = kQ4ScalesOffset + kPanel * sizeof(uint16_t);

// [n_in, n_out], cut into panels of 16 outputs, which MatMul streams through front to
// back while it keeps a panel's sums in registers. Outputs past n_out are zero, and so
// are inputs past n_in in the last group.
class PackedMatrix {
 public:
  PackedMatrix() = default;

  // All zero.
  static StatusOr<PackedMatrix> Create(size_t n_in, size_t n_out, const char* what,
                                       WeightDtype dtype = WeightDtype::kF32);

  size_t n_in() const { return n_in_; }
  size_t n_out() const { return n_out_; }
  WeightDtype dtype() const { return dtype_; }
  size_t panels() const { return (n_out_ + kPanel - 1) / kPanel; }
  size_t groups() const { return QuantGroups(n_in_); }
  bool empty() const { return data_.size() == 0; }
  size_t bytes() const { return data_.bytes(); }

  // kF32: [n_in, 16], for each input the weights of outputs 16p .. 16p+15.
  const float* FloatPanel(size_t panel) const {
    return reinterpret_cast<const float*>(data_.data() + panel * panel_bytes_);
  }
  // kQ8, kQ4: [groups] of kQ8GroupBytes or kQ4GroupBytes.
  const uint8_t* QuantizedPanel(size_t panel) const {
    return data_.data() + panel * panel_bytes_;
  }

  // An element as it is multiplied with: rounded, when quantised.
  float At(size_t in, size_t out) const;

  // The integers of an output's group [32], as signed numbers, and their scale.
  QuantizedGroup Group(size_t group, size_t out) const;

  // The n_in weights of one output: a row of an embedding.
  void GatherOutput(size_t out, float* row) const;

 private:
  friend class MatrixWriter;

  float* MutableFloatPanel(size_t panel) {
    return reinterpret_cast<float*>(data_.data() + panel * panel_bytes_);
  }
  void SetGroup(size_t group, size_t out, const QuantizedGroup& values);

  size_t n_in_ = 0;
  size_t n_out_ = 0;
  WeightDtype dtype_ = WeightDtype::kF32;
  size_t panel_bytes_ = 0;
  AlignedBuffer<uint8_t> data_;
};

}  // namespace kvasm

#endif  // KVASM_KERNELS_PACKED_MATRIX_H_
