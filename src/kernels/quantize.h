// Floats to small integers and back, a group of 32 at a time.

#ifndef KVASM_KERNELS_QUANTIZE_H_
#define KVASM_KERNELS_QUANTIZE_H_

#include <cstddef>
#include <cstdint>

#include "base/aligned_buffer.h"
#include "base/status.h"
#include "kernels/dot_i8.h"
#include "kernels/weight_dtype.h"

namespace kvasm {

// A group's integers, and the scale that they are multiplied with. The scale has the
// precision of a bfloat16, as which it is stored. It is NaN where a value is not
// finite, so that such a weight or activation is not taken for a number.
struct QuantizedGroup {
  int8_t q[kQuantGroup];
  uint16_t scale;  // bfloat16
};

// values [32]. q8 in -127 .. 127: the largest magnitude is 127 or a little less.
QuantizedGroup QuantizeQ8(const float* values);

// q in -8 .. 7. The value of the largest magnitude becomes -8, whatever its sign: the
// scale may be negative, and all 16 levels are used. Of that scale and a few around it,
// the one with the least squared error is taken.
QuantizedGroup QuantizeQ4(const float* values);

// Activations as integers, for products with quantised weights of one dtype: 7 bits
// with their sign for kQ8, 8 bits for kQ4, which is what the i8 dot product of
// WebAssembly leaves room for (one operand is 0 .. 127) when the other one is the
// weights.
class QuantizedRows {
 public:
  static StatusOr<QuantizedRows> Create(size_t max_rows, size_t max_n);

  size_t bytes() const {
    return values_.bytes() + scales_.bytes() + corrections_.bytes();
  }

  // Row `row` from x [n].
  void Quantize(const float* x, size_t n, WeightDtype dtype, size_t row);

  // An integer of a row, quantised for `dtype`.
  int At(size_t row, size_t i, WeightDtype dtype) const;

  // [32 * groups], in the form that the dot product takes
  const DotInput* Values(size_t row) const {
    return values_.data() + row * max_groups_ * kQuantGroup;
  }
  // [groups]
  const float* Scales(size_t row) const { return scales_.data() + row * max_groups_; }
  // [groups]: what a sum of products starts with for kQ4, -8 times the group's sum.
  const int32_t* Corrections(size_t row) const {
    return corrections_.data() + row * max_groups_;
  }

 private:
  size_t max_groups_ = 0;
  AlignedBuffer<DotInput> values_;
  AlignedBuffer<float> scales_;
  AlignedBuffer<int32_t> corrections_;
};

}  // namespace kvasm

#endif  // KVASM_KERNELS_QUANTIZE_H_
