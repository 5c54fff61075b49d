#include "kernels/packed_matrix.h"

#include <algorithm>
#include <cstring>

namespace kvasm {

StatusOr<PackedMatrix> PackedMatrix::Create(size_t n_in, size_t n_out,
                                            const char* what) {
  PackedMatrix matrix;
  matrix.n_in_ = n_in;
  matrix.n_out_ = n_out;
  const size_t size = SaturatedProduct(n_in, matrix.panels() * kPanel);
  KVASM_RETURN_IF_ERROR(Allocate(size, what, &matrix.data_));
  return matrix;
}

void PackedMatrix::StoreConv1d(size_t first, const float* elements, size_t count) {
  while (count > 0) {
    const size_t in = first / n_out_;
    const size_t out = first % n_out_;
    const size_t lane = out % kPanel;
    const size_t run = std::min({kPanel - lane, n_out_ - out, count});
    float* panel = data_.data() + out / kPanel * n_in_ * kPanel;
    std::memcpy(panel + in * kPanel + lane, elements, run * sizeof(float));
    first += run;
    elements += run;
    count -= run;
  }
}

void PackedMatrix::StoreLinear(size_t first, const float* elements, size_t count) {
  while (count > 0) {
    const size_t out = first / n_in_;
    const size_t in = first % n_in_;
    const size_t run = std::min(n_in_ - in, count);
    float* column = data_.data() + out / kPanel * n_in_ * kPanel + out % kPanel;
    for (size_t i = 0; i < run; ++i) column[(in + i) * kPanel] = elements[i];
    first += run;
    elements += run;
    count -= run;
  }
}

void PackedMatrix::GatherOutput(size_t out, float* row) const {
  const float* column = Panel(out / kPanel) + out % kPanel;
  for (size_t in = 0; in < n_in_; ++in) row[in] = column[in * kPanel];
}

}  // namespace kvasm
