// out = x w + bias, for one row (decode) and for many (prefill).

#ifndef KVASM_KERNELS_MATMUL_H_
#define KVASM_KERNELS_MATMUL_H_

#include <cstddef>

#include "base/thread_pool.h"
#include "kernels/packed_matrix.h"
#include "kernels/quantize.h"

namespace kvasm {

struct MatMulInput {
  const float* floats;  // [rows, stride]
  size_t rows;
  size_t stride;
  // The same rows, quantised for the dtype of the matrix; read only when it has one.
  const QuantizedRows* quantized;
};

// The outputs of panels begin .. end-1, 16 each.
// w    [n_in, n_out]
// bias [PaddedSize(n_out)], or null for none
// out  [rows, out_stride], out_stride >= PaddedSize(n_out); the padding is written, too
//
// Each output is one sum in a fixed order, then the bias: kF32 over inputs k = 0, 1, ..
// n_in-1; kQ8 and kQ4 over groups of 32 of them, whose sums are exact integers. So a
// row's bits depend neither on the rows beside it nor on how panels are split.
void MatMulPanels(const MatMulInput& x, const PackedMatrix& w, size_t begin, size_t end,
                  const float* bias, float* out, size_t out_stride);

// All panels, divided among the threads of the pool; null for the caller alone.
void MatMul(const MatMulInput& x, const PackedMatrix& w, const float* bias, float* out,
            size_t out_stride, ThreadPool* pool = nullptr);

// The same, one multiplication at a time. Agrees with MatMul to the bit.
void NaiveMatMul(const MatMulInput& x, const PackedMatrix& w, const float* bias,
                 float* out, size_t out_stride);

// MatMulPanels for kQ8 and kQ4.
void QuantizedMatMulPanels(const MatMulInput& x, const PackedMatrix& w, size_t begin,
                           size_t end, const float* bias, float* out,
                           size_t out_stride);

}  // namespace kvasm

#endif  // KVASM_KERNELS_MATMUL_H_
