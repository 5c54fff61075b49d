#include "kernels/matrix_writer.h"

#include <algorithm>
#include <cstring>

namespace kvasm {
namespace {

QuantizedGroup Quantize(WeightDtype dtype, const float* values) {
  return dtype == WeightDtype::kQ8 ? QuantizeQ8(values) : QuantizeQ4(values);
}

// Whether input `in` is the last of its group.
bool EndsGroup(size_t in, size_t n_in) {
  return in % kQuantGroup == kQuantGroup - 1 || in == n_in - 1;
}

}  // namespace

StatusOr<MatrixWriter> MatrixWriter::Create(size_t max_n_out, WeightDtype dtype,
                                            const char* what) {
  MatrixWriter writer;
  const size_t size =
      dtype == WeightDtype::kF32 ? 0 : SaturatedProduct(kQuantGroup, max_n_out);
  KVASM_RETURN_IF_ERROR(Allocate(size, what, &writer.rows_));
  return writer;
}

void MatrixWriter::Write(MatrixOrder order, size_t first, const float* elements,
                         size_t count, PackedMatrix* matrix) {
  if (matrix->dtype() == WeightDtype::kF32) {
    WriteFloats(order, first, elements, count, matrix);
  } else if (order == MatrixOrder::kConv1d) {
    WriteConv1d(first, elements, count, matrix);
  } else {
    WriteLinear(first, elements, count, matrix);
  }
}

void MatrixWriter::WriteFloats(MatrixOrder order, size_t first, const float* elements,
                               size_t count, PackedMatrix* matrix) {
  const size_t row = order == MatrixOrder::kConv1d ? matrix->n_out() : matrix->n_in();
  while (count > 0) {
    const size_t column = first % row;
    size_t run = std::min(row - column, count);
    if (order == MatrixOrder::kConv1d) {
      const size_t lane = column % kPanel;
      run = std::min(run, kPanel - lane);
      float* panel = matrix->MutableFloatPanel(column / kPanel);
      std::memcpy(panel + first / row * kPanel + lane, elements, run * sizeof(float));
    } else {
      const size_t out = first / row;
      float* to = matrix->MutableFloatPanel(out / kPanel) + out % kPanel;
      for (size_t i = 0; i < run; ++i) to[(column + i) * kPanel] = elements[i];
    }
    first += run;
    elements += run;
    count -= run;
  }
}

void MatrixWriter::WriteConv1d(size_t first, const float* elements, size_t count,
                               PackedMatrix* matrix) {
  const size_t n_in = matrix->n_in();
  const size_t n_out = matrix->n_out();
  while (count > 0) {
    const size_t in = first / n_out;
    const size_t out = first % n_out;
    const size_t run = std::min(n_out - out, count);
    std::memcpy(rows_.data() + in % kQuantGroup * n_out + out, elements,
                run * sizeof(float));
    first += run;
    elements += run;
    count -= run;
    if (out + run < n_out || !EndsGroup(in, n_in)) continue;
    const size_t filled = in % kQuantGroup + 1;
    for (size_t first_out = 0; first_out < n_out; first_out += kPanel) {
      // By whole cache lines: the rows of one output often fall into one set of the
      // cache.
      float groups[kPanel][kQuantGroup] = {};
      const size_t outputs = std::min(kPanel, n_out - first_out);
      for (size_t i = 0; i < filled; ++i) {
        const float* row = rows_.data() + i * n_out + first_out;
        for (size_t o = 0; o < outputs; ++o) groups[o][i] = row[o];
      }
      for (size_t o = 0; o < outputs; ++o) {
        matrix->SetGroup(in / kQuantGroup, first_out + o,
                         Quantize(matrix->dtype(), groups[o]));
      }
    }
  }
}

void MatrixWriter::WriteLinear(size_t first, const float* elements, size_t count,
                               PackedMatrix* matrix) {
  const size_t n_in = matrix->n_in();
  while (count > 0) {
    const size_t in = first % n_in;
    const size_t slot = in % kQuantGroup;
    const size_t run = std::min({kQuantGroup - slot, n_in - in, count});
    std::copy(elements, elements + run, group_ + slot);
    if (EndsGroup(in + run - 1, n_in)) {
      std::fill(group_ + slot + run, group_ + kQuantGroup, 0.0f);
      matrix->SetGroup(in / kQuantGroup, first / n_in,
                       Quantize(matrix->dtype(), group_));
    }
    first += run;
    elements += run;
    count -= run;
  }
}

}  // namespace kvasm
