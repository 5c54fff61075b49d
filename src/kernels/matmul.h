// out = x w + bias, for one row (decode) and for many (prefill).

#ifndef KVASM_KERNELS_MATMUL_H_
#define KVASM_KERNELS_MATMUL_H_

#include <cstddef>

#include "base/thread_pool.h"
#include "kernels/packed_matrix.h"

namespace kvasm {

// x    [rows, x_stride], of which w.n_in() columns are read
// w    [n_in, n_out]
// bias [PaddedSize(n_out)], or null for none
// out  [rows, out_stride], out_stride >= PaddedSize(n_out); the padding is written, too
//
// pool divides the outputs among its threads; null for the caller alone
//
// Each output is one sum over k = 0, 1, .. n_in-1 in that order, then the bias, however
// many rows and threads there are: a row's bits do not depend on the rows beside it.
void MatMul(const float* x, size_t rows, size_t x_stride, const PackedMatrix& w,
            const float* bias, float* out, size_t out_stride,
            ThreadPool* pool = nullptr);

// The same, one multiplication at a time. Agrees with MatMul to the bit.
void NaiveMatMul(const float* x, size_t rows, size_t x_stride, const PackedMatrix& w,
                 const float* bias, float* out, size_t out_stride);

}  // namespace kvasm

#endif  // KVASM_KERNELS_MATMUL_H_
