// Fills packed matrices as a checkpoint's elements stream by.

#ifndef KVASM_KERNELS_MATRIX_WRITER_H_
#define KVASM_KERNELS_MATRIX_WRITER_H_

#include <cstddef>

#include "base/aligned_buffer.h"
#include "base/status.h"
#include "kernels/packed_matrix.h"

namespace kvasm {

enum class MatrixOrder {
  kConv1d,  // Row-major [n_in, n_out]: GPT-2's Conv1D.
  kLinear,  // Row-major [n_out, n_in]: an embedding, a Linear.
};

// Elements are quantised as soon as a group of them is complete, so that no matrix is
// in memory twice: what is held back are 32 rows of a Conv1D, or 32 elements.
class MatrixWriter {
 public:
  // For matrices of up to `max_n_out` outputs in kConv1d's order, and any others.
  static StatusOr<MatrixWriter> Create(size_t max_n_out, WeightDtype dtype,
                                       const char* what);

  // Places `count` elements of a matrix, from element `first` on. Those of a quantised
  // matrix come front to back, one matrix after the other.
  void Write(MatrixOrder order, size_t first, const float* elements, size_t count,
             PackedMatrix* matrix);

 private:
  void WriteFloats(MatrixOrder order, size_t first, const float* elements, size_t count,
                   PackedMatrix* matrix);
  void WriteConv1d(size_t first, const float* elements, size_t count,
                   PackedMatrix* matrix);
  void WriteLinear(size_t first, const float* elements, size_t count,
                   PackedMatrix* matrix);

  AlignedBuffer<float> rows_;  // [32, n_out]: the inputs of a group, for all outputs
  float group_[kQuantGroup];   // an output's
};

}  // namespace kvasm

#endif  // KVASM_KERNELS_MATRIX_WRITER_H_
