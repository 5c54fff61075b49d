#include "kernels/layer_norm.h"

#include <cmath>

#include "kernels/simd.h"

namespace kvasm {
namespace {

// Sum of f(x[i]) over i < n: lane by lane, then over the lanes.
template <class Function>
HWY_INLINE float SumOf(const float* x, size_t n, Function f) {
  FloatVec sum = hn::Zero(kFloatTag);
  size_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    sum = hn::Add(sum, f(hn::Load(kFloatTag, x + i)));
  }
  if (i < n) {
    const auto tail = hn::FirstN(kFloatTag, n - i);
    sum = hn::Add(sum, hn::IfThenElseZero(tail, f(hn::Load(kFloatTag, x + i))));
  }
  return hn::ReduceSum(kFloatTag, sum);
}

}  // namespace

void LayerNorm(const float* x, size_t rows, size_t stride, size_t n, const float* gain,
               const float* bias, float epsilon, float* out) {
  for (size_t r = 0; r < rows; ++r) {
    const float* row = x + r * stride;
    float* out_row = out + r * stride;
    const float mean =
        SumOf(row, n, [](FloatVec v) { return v; }) / static_cast<float>(n);
    const FloatVec mean_v = hn::Set(kFloatTag, mean);
    const float variance = SumOf(row, n,
                                 [mean_v](FloatVec v) {
                                   const FloatVec centred = hn::Sub(v, mean_v);
                                   return hn::Mul(centred, centred);
                                 }) /
                           static_cast<float>(n);
    const FloatVec scale = hn::Set(kFloatTag, 1.0f / std::sqrt(variance + epsilon));
    for (size_t i = 0; i < n; i += kLanes) {
      const FloatVec unit =
          hn::Mul(hn::Sub(hn::Load(kFloatTag, row + i), mean_v), scale);
      hn::Store(MultiplyAdd(unit, hn::Load(kFloatTag, gain + i),
                            hn::Load(kFloatTag, bias + i)),
                kFloatTag, out_row + i);
    }
  }
}

void NaiveLayerNorm(const float* x, size_t rows, size_t stride, size_t n,
                    const float* gain, const float* bias, float epsilon, float* out) {
  for (size_t r = 0; r < rows; ++r) {
    const float* row = x + r * stride;
    double mean = 0;
    for (size_t i = 0; i < n; ++i) mean += row[i];
    mean /= static_cast<double>(n);
    double variance = 0;
    for (size_t i = 0; i < n; ++i) variance += (row[i] - mean) * (row[i] - mean);
    variance /= static_cast<double>(n);
    for (size_t i = 0; i < n; ++i) {
      out[r * stride + i] = static_cast<float>(
          (row[i] - mean) / std::sqrt(variance + epsilon) * gain[i] + bias[i]);
    }
  }
}

}  // namespace kvasm
