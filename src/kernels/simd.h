// Highway with static dispatch: one target, chosen by the compiler's flags (wasm128 for
// the product), so that there is nothing to select at run time and nothing to link.

#ifndef KVASM_KERNELS_SIMD_H_
#define KVASM_KERNELS_SIMD_H_

#define HWY_COMPILE_ONLY_STATIC
#include <cmath>
#include <cstddef>

#include "hwy/highway.h"

namespace kvasm {

namespace hn = hwy::HWY_NAMESPACE;

// Work is laid out in groups of 16 floats (a panel of outputs, a block of tokens),
// whatever the vector length: 4 vectors on wasm, 2 with AVX2. That fixes the layouts,
// and with them the order of every reduction.
inline constexpr size_t kGroup = 16;

using FloatTag = hn::CappedTag<float, kGroup>;
inline constexpr FloatTag kFloatTag;
inline constexpr size_t kLanes = HWY_MAX_LANES_D(FloatTag);
inline constexpr size_t kVectorsPerGroup = kGroup / kLanes;
using FloatVec = hn::Vec<FloatTag>;

// a * b + c, with one rounding where the target can, else with two. Highway 1.2 does
// not know of WebAssembly's relaxed instructions, which fuse on CPUs that do. Not named
// MulAdd: by its arguments' namespace a call would find Highway's.
template <class V>
HWY_INLINE V MultiplyAdd(V a, V b, V c) {
#if defined(__wasm_relaxed_simd__)
  return V{wasm_f32x4_relaxed_madd(a.raw, b.raw, c.raw)};
#else
  return hn::MulAdd(a, b, c);
#endif
}

// What MultiplyAdd does to one lane. The naive twins use it, so that they and the
// kernels agree to the bit.
inline float ScalarMulAdd(float a, float b, float c) {
#if defined(__wasm_relaxed_simd__)
  return hn::GetLane(
      MultiplyAdd(hn::Set(kFloatTag, a), hn::Set(kFloatTag, b), hn::Set(kFloatTag, c)));
#elif HWY_NATIVE_FMA
  return std::fma(a, b, c);
#else
  return a * b + c;
#endif
}

}  // namespace kvasm

#endif  // KVASM_KERNELS_SIMD_H_
