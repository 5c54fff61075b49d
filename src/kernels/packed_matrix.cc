#include "kernels/packed_matrix.h"

#include <algorithm>
#include <cstring>

#include "base/float16.h"

namespace kvasm {
namespace {

size_t GroupBytes(WeightDtype dtype) {
  return dtype == WeightDtype::kQ8 ? kQ8GroupBytes : kQ4GroupBytes;
}

// Where an integer is in its group: its byte and, for kQ4, by how much it is shifted.
struct Place {
  size_t byte;
  int shift;
};

Place PlaceOf(WeightDtype dtype, size_t in, size_t lane) {
  const size_t quad = in / 4;
  if (dtype == WeightDtype::kQ8) return {(quad * kPanel + lane) * 4 + in % 4, 0};
  return {(quad / 2 * kPanel + lane) * 4 + in % 4, quad % 2 == 0 ? 0 : 4};
}

}  // namespace

StatusOr<PackedMatrix> PackedMatrix::Create(size_t n_in, size_t n_out, const char* what,
                                            WeightDtype dtype) {
  PackedMatrix matrix;
  matrix.n_in_ = n_in;
  matrix.n_out_ = n_out;
  matrix.dtype_ = dtype;
  matrix.panel_bytes_ = dtype == WeightDtype::kF32
                            ? SaturatedProduct(n_in, kPanel * sizeof(float))
                            : SaturatedProduct(matrix.groups(), GroupBytes(dtype));
  KVASM_RETURN_IF_ERROR(Allocate(SaturatedProduct(matrix.panels(), matrix.panel_bytes_),
                                 what, &matrix.data_));
  return matrix;
}

void PackedMatrix::SetGroup(size_t group, size_t out, const QuantizedGroup& values) {
  uint8_t* bytes =
      data_.data() + out / kPanel * panel_bytes_ + group * GroupBytes(dtype_);
  const size_t lane = out % kPanel;
  const int8_t* q = values.q;
  size_t scales = kQ4ScalesOffset;
  if (dtype_ == WeightDtype::kQ8) {
    scales = kQ8ScalesOffset;
    int sum = 0;
    for (size_t i = 0; i < kQuantGroup; i += 4) {
      std::memcpy(bytes + PlaceOf(dtype_, i, lane).byte, q + i, 4);
      sum += q[i] + q[i + 1] + q[i + 2] + q[i + 3];
    }
    const int16_t minus_sum = static_cast<int16_t>(-sum);
    std::memcpy(bytes + kQ8SumsOffset + lane * sizeof(minus_sum), &minus_sum,
                sizeof(minus_sum));
  } else {
    for (size_t even = 0; even < kQuantGroup; even += 8) {
      uint8_t* pair = bytes + PlaceOf(dtype_, even, lane).byte;
      for (size_t i = 0; i < 4; ++i) {
        pair[i] = static_cast<uint8_t>((q[even + i] + 8) | (q[even + 4 + i] + 8) << 4);
      }
    }
  }
  std::memcpy(bytes + scales + lane * sizeof(values.scale), &values.scale,
              sizeof(values.scale));
}

QuantizedGroup PackedMatrix::Group(size_t group, size_t out) const {
  const bool q8 = dtype_ == WeightDtype::kQ8;
  const uint8_t* bytes =
      data_.data() + out / kPanel * panel_bytes_ + group * GroupBytes(dtype_);
  const size_t lane = out % kPanel;
  QuantizedGroup values;
  for (size_t i = 0; i < kQuantGroup; ++i) {
    const Place place = PlaceOf(dtype_, i, lane);
    const uint8_t byte = bytes[place.byte];
    values.q[i] = q8 ? static_cast<int8_t>(byte)
                     : static_cast<int8_t>((byte >> place.shift & 15) - 8);
  }
  std::memcpy(
      &values.scale,
      bytes + (q8 ? kQ8ScalesOffset : kQ4ScalesOffset) + lane * sizeof(values.scale),
      sizeof(values.scale));
  return values;
}

float PackedMatrix::At(size_t in, size_t out) const {
  if (dtype_ == WeightDtype::kF32) {
    return FloatPanel(out / kPanel)[in * kPanel + out % kPanel];
  }
  const QuantizedGroup group = Group(in / kQuantGroup, out);
  return static_cast<float>(group.q[in % kQuantGroup]) * BFloat16ToFloat(group.scale);
}

void PackedMatrix::GatherOutput(size_t out, float* row) const {
  if (dtype_ == WeightDtype::kF32) {
    const float* column = FloatPanel(out / kPanel) + out % kPanel;
    for (size_t in = 0; in < n_in_; ++in) row[in] = column[in * kPanel];
    return;
  }
  for (size_t g = 0; g < groups(); ++g) {
    const QuantizedGroup group = Group(g, out);
    const float scale = BFloat16ToFloat(group.scale);
    const size_t end = std::min((g + 1) * kQuantGroup, n_in_);
    for (size_t in = g * kQuantGroup; in < end; ++in) {
      row[in] = static_cast<float>(group.q[in % kQuantGroup]) * scale;
    }
  }
}

}  // namespace kvasm
