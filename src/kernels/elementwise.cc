#include "kernels/elementwise.h"

#include <cmath>

#include "kernels/exp.h"
#include "kernels/simd.h"

namespace kvasm {
namespace {

constexpr float kSqrt2OverPi = 0.7978845608028654f;
constexpr float kCubic = 0.044715f;

}  // namespace

void GeluNew(float* x, size_t n) {
  // (1 + tanh u) / 2 = 1 / (1 + exp(-2u)): one exponential instead of a tanh, and no
  // cancellation where tanh u is near -1.
  const FloatVec one = hn::Set(kFloatTag, 1.0f);
  const FloatVec linear = hn::Set(kFloatTag, -2.0f * kSqrt2OverPi);
  const FloatVec largest = hn::Set(kFloatTag, kLargestExp);
  const FloatVec cubic = hn::Set(kFloatTag, -2.0f * kSqrt2OverPi * kCubic);
  for (size_t i = 0; i < n; i += kLanes) {
    const FloatVec v = hn::Load(kFloatTag, x + i);
    const FloatVec minus_2u = hn::Mul(v, MultiplyAdd(hn::Mul(v, v), cubic, linear));
    const FloatVec e = Exp(hn::Min(minus_2u, largest));
    hn::Store(hn::Div(v, hn::Add(one, e)), kFloatTag, x + i);
  }
}

void NaiveGeluNew(float* x, size_t n) {
  for (size_t i = 0; i < n; ++i) {
    const double v = x[i];
    const double u = std::sqrt(2.0 / M_PI) * (v + 0.044715 * v * v * v);
    x[i] = static_cast<float>(0.5 * v * (1.0 + std::tanh(u)));
  }
}

void AddTo(float* x, const float* y, size_t n) {
  for (size_t i = 0; i < n; i += kLanes) {
    hn::Store(hn::Add(hn::Load(kFloatTag, x + i), hn::Load(kFloatTag, y + i)),
              kFloatTag, x + i);
  }
}

}  // namespace kvasm
