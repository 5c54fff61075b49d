#include "kernels/quantize.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "base/float16.h"

namespace kvasm {
namespace {

// Groups of smaller values are taken for zero, before their reciprocals are infinite.
constexpr float kTiny = 1e-30f;

constexpr uint16_t kBFloat16Nan = 0x7FC0;

// Away from zero, so that a value divided by it is not larger than intended.
uint16_t BFloat16AwayFromZero(float x) {
  if (!std::isfinite(x)) return kBFloat16Nan;
  return static_cast<uint16_t>((std::bit_cast<uint32_t>(x) + 0xFFFFu) >> 16);
}

struct Range {
  float magnitude;   // The largest.
  float not_finite;  // 0, or NaN if some value is not finite.
};

// values [32]
Range RangeOf(const float* values) {
  Float4Vec magnitude = hn::Zero(kFloat4Tag);
  Float4Vec not_finite = hn::Zero(kFloat4Tag);
  for (size_t i = 0; i < kQuantGroup; i += 4) {
    const Float4Vec v = hn::LoadU(kFloat4Tag, values + i);
    magnitude = hn::Max(magnitude, hn::Abs(v));
    not_finite = hn::Add(not_finite, hn::Mul(v, hn::Zero(kFloat4Tag)));
  }
  return {hn::ReduceMax(kFloat4Tag, magnitude), hn::ReduceSum(kFloat4Tag, not_finite)};
}

// q [32]: values / scale, to the nearest integers.
void Divide(const float* values, float scale, int32_t* q) {
  const Float4Vec inverse = hn::Set(kFloat4Tag, 1.0f / scale);
  for (size_t i = 0; i < kQuantGroup; i += 4) {
    const Float4Vec v = hn::Mul(hn::LoadU(kFloat4Tag, values + i), inverse);
    hn::Store(hn::NearestInt(v), kInt4Tag, q + i);
  }
}

}  // namespace

QuantizedGroup QuantizeQ8(const float* values) {
  QuantizedGroup group = {};
  const Range range = RangeOf(values);
  group.scale = BFloat16AwayFromZero(range.magnitude / 127 + range.not_finite);
  if (range.magnitude < kTiny || group.scale == kBFloat16Nan) return group;
  alignas(16) int32_t q[kQuantGroup];
  Divide(values, BFloat16ToFloat(group.scale), q);
  for (size_t i = 0; i < kQuantGroup; ++i) group.q[i] = static_cast<int8_t>(q[i]);
  return group;
}

namespace {

// The value of the largest magnitude.
float ExtremeOf(const float* values) {
  Float4Vec most = hn::LoadU(kFloat4Tag, values);
  Float4Vec least = most;
  for (size_t i = 4; i < kQuantGroup; i += 4) {
    const Float4Vec v = hn::LoadU(kFloat4Tag, values + i);
    most = hn::Max(most, v);
    least = hn::Min(least, v);
  }
  const float largest = hn::ReduceMax(kFloat4Tag, most);
  const float smallest = hn::ReduceMin(kFloat4Tag, least);
  return largest >= -smallest ? largest : smallest;
}

// values / scale to the nearest of the integers that 4 bits have room for.
HWY_INLINE Float4Vec RoundToQ4(Float4Vec values, Float4Vec inverse_scale) {
  return hn::Clamp(hn::Round(hn::Mul(values, inverse_scale)),
                   hn::Set(kFloat4Tag, -8.0f), hn::Set(kFloat4Tag, 7.0f));
}

float SquaredErrorOfQ4(const float* values, float scale) {
  const Float4Vec scale_v = hn::Set(kFloat4Tag, scale);
  const Float4Vec inverse = hn::Set(kFloat4Tag, 1.0f / scale);
  Float4Vec error = hn::Zero(kFloat4Tag);
  for (size_t i = 0; i < kQuantGroup; i += 4) {
    const Float4Vec v = hn::LoadU(kFloat4Tag, values + i);
    const Float4Vec rounded = hn::Mul(RoundToQ4(v, inverse), scale_v);
    const Float4Vec difference = hn::Sub(v, rounded);
    error = hn::Add(error, hn::Mul(difference, difference));
  }
  return hn::ReduceSum(kFloat4Tag, error);
}

}  // namespace

QuantizedGroup QuantizeQ4(const float* values) {
  QuantizedGroup group = {};
  const Range range = RangeOf(values);
  group.scale = BFloat16AwayFromZero(range.magnitude / 8 + range.not_finite);
  if (range.magnitude < kTiny || group.scale == kBFloat16Nan) return group;
  const float extreme = ExtremeOf(values);
  float least_error = INFINITY;
  // Mean squared error for normal values, in thousandths: -8 alone 7.4, with -8.5 6.9,
  // with -7.25 6.8, with -7.75 6.7; all quarters from -6.5 to -10.5 6.6.
  for (const float divisor : {-8.0f, -8.5f, -7.25f, -7.75f}) {
    const uint16_t candidate = BFloat16AwayFromZero(extreme / divisor);
    const float error = SquaredErrorOfQ4(values, BFloat16ToFloat(candidate));
    if (error >= least_error) continue;
    least_error = error;
    group.scale = candidate;
  }
  alignas(16) int32_t q[kQuantGroup];
  const Float4Vec inverse = hn::Set(kFloat4Tag, 1.0f / BFloat16ToFloat(group.scale));
  for (size_t i = 0; i < kQuantGroup; i += 4) {
    const Float4Vec v = hn::LoadU(kFloat4Tag, values + i);
    hn::Store(hn::ConvertTo(kInt4Tag, RoundToQ4(v, inverse)), kInt4Tag, q + i);
  }
  for (size_t i = 0; i < kQuantGroup; ++i) group.q[i] = static_cast<int8_t>(q[i]);
  return group;
}

StatusOr<QuantizedRows> QuantizedRows::Create(size_t max_rows, size_t max_n) {
  constexpr char kWhat[] = "the activations";
  QuantizedRows rows;
  rows.max_groups_ = QuantGroups(max_n);
  const size_t groups = SaturatedProduct(max_rows, rows.max_groups_);
  KVASM_RETURN_IF_ERROR(
      Allocate(SaturatedProduct(groups, kQuantGroup), kWhat, &rows.values_));
  KVASM_RETURN_IF_ERROR(Allocate(groups, kWhat, &rows.scales_));
  KVASM_RETURN_IF_ERROR(Allocate(groups, kWhat, &rows.corrections_));
  return rows;
}

void QuantizedRows::Quantize(const float* x, size_t n, WeightDtype dtype, size_t row) {
  const bool q8 = dtype == WeightDtype::kQ8;
  const float most = q8 ? 63 : 127;
  const int zero = q8 ? kQ8InputZero : 0;
  DotInput* values = values_.data() + row * max_groups_ * kQuantGroup;
  float* scales = scales_.data() + row * max_groups_;
  int32_t* corrections = corrections_.data() + row * max_groups_;
  for (size_t g = 0; g < QuantGroups(n); ++g, values += kQuantGroup) {
    const size_t count = std::min(kQuantGroup, n - g * kQuantGroup);
    const float* from = x + g * kQuantGroup;
    float padded[kQuantGroup];
    if (count < kQuantGroup) {
      std::fill(std::copy(from, from + count, padded), padded + kQuantGroup, 0.0f);
      from = padded;
    }
    const Range range = RangeOf(from);
    const float scale = range.magnitude / most + range.not_finite;
    scales[g] = scale;
    alignas(16) int32_t q[kQuantGroup] = {};
    if (range.magnitude >= kTiny && std::isfinite(scale)) Divide(from, scale, q);
    int32_t sum = 0;
    for (size_t i = 0; i < kQuantGroup; ++i) {
      values[i] = static_cast<DotInput>(q[i] + zero);
      sum += q[i];
    }
    corrections[g] = -8 * sum;
  }
}

// Not inline: GCC 12 with AVX-512 VNNI takes the signed bytes of kQ4 for unsigned ones
// in a loop that multiplies them.
int QuantizedRows::At(size_t row, size_t i, WeightDtype dtype) const {
  const DotInput stored = Values(row)[i];
  return dtype == WeightDtype::kQ8 ? stored - kQ8InputZero
                                   : static_cast<int8_t>(stored);
}

}  // namespace kvasm
