// Sums of products of 8-bit integers, four to a 32-bit lane: the one operation that
// WebAssembly with relaxed SIMD, WebAssembly without, and native builds do in ways that
// differ. All of them are exact, so their sums are the same.

#ifndef KVASM_KERNELS_DOT_I8_H_
#define KVASM_KERNELS_DOT_I8_H_

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "kernels/simd.h"

namespace kvasm {

// Four lanes on every target: an output each.
using Int4Tag = hn::FixedTag<int32_t, 4>;
using Int4Vec = hn::Vec<Int4Tag>;
using Float4Tag = hn::FixedTag<float, 4>;
using Float4Vec = hn::Vec<Float4Tag>;
inline constexpr Int4Tag kInt4Tag;
inline constexpr Float4Tag kFloat4Tag;

#if HWY_TARGET == HWY_WASM && !defined(__wasm_relaxed_simd__)

// i32x4.dot_i16x8_s, after widening. Widening the weights as they are loaded costs
// nothing, but each half of them fills two lanes an output: hence two sums.
using DotInput = int16_t;
// What is added to an activation before it is stored for kQ8.
inline constexpr int kQ8InputZero = 0;

struct DotInputs {
  v128_t quad_twice;
};
struct DotWeights {
  v128_t low;   // outputs 0, 1
  v128_t high;  // outputs 2, 3
};
struct DotSum {
  v128_t low;
  v128_t high;
};

HWY_INLINE DotInputs LoadInputs(const DotInput* quad) {
  return {wasm_v128_load64_splat(quad)};
}
HWY_INLINE DotWeights LoadQ8(const uint8_t* weights) {
  return {wasm_i16x8_load8x8(weights), wasm_i16x8_load8x8(weights + 8)};
}
HWY_INLINE void LoadQ4(const uint8_t* weights, DotWeights* even, DotWeights* odd) {
  const v128_t both = wasm_v128_load(weights);
  const v128_t low = wasm_v128_and(both, wasm_i8x16_const_splat(15));
  const v128_t high = wasm_u8x16_shr(both, 4);
  *even = {wasm_u16x8_extend_low_u8x16(low), wasm_u16x8_extend_high_u8x16(low)};
  *odd = {wasm_u16x8_extend_low_u8x16(high), wasm_u16x8_extend_high_u8x16(high)};
}
HWY_INLINE DotSum StartSum(Int4Vec start) {
  // Each output has two lanes; `start` must be counted in one of them.
  const v128_t zero = wasm_i32x4_const_splat(0);
  return {wasm_i32x4_shuffle(start.raw, zero, 0, 4, 1, 5),
          wasm_i32x4_shuffle(start.raw, zero, 2, 4, 3, 5)};
}
template <bool kSignedWeights>
HWY_INLINE DotSum AddProducts(DotSum sum, DotWeights w, DotInputs x) {
  return {wasm_i32x4_add(sum.low, wasm_i32x4_dot_i16x8(w.low, x.quad_twice)),
          wasm_i32x4_add(sum.high, wasm_i32x4_dot_i16x8(w.high, x.quad_twice))};
}
HWY_INLINE Int4Vec FinishSum(DotSum sum) {
  return Int4Vec{wasm_i32x4_add(wasm_i32x4_shuffle(sum.low, sum.high, 0, 2, 4, 6),
                                wasm_i32x4_shuffle(sum.low, sum.high, 1, 3, 5, 7))};
}

#else

// The products take an operand in 0 .. 127: activations with 64 added for kQ8, the
// weights for kQ4. What the 64 is too much, the packed weights say.
using DotInput = uint8_t;
inline constexpr int kQ8InputZero = 64;

using Byte16Tag = hn::FixedTag<uint8_t, 16>;
using Sbyte16Tag = hn::FixedTag<int8_t, 16>;
using DotInputs = hn::Vec<Byte16Tag>;
using DotWeights = hn::Vec<Byte16Tag>;
using DotSum = Int4Vec;

HWY_INLINE DotInputs LoadInputs(const DotInput* quad) {
  int32_t bytes;
  std::memcpy(&bytes, quad, sizeof(bytes));
  return hn::BitCast(Byte16Tag(), hn::Set(kInt4Tag, bytes));
}
HWY_INLINE DotWeights LoadQ8(const uint8_t* weights) {
  return hn::Load(Byte16Tag(), weights);
}
HWY_INLINE void LoadQ4(const uint8_t* weights, DotWeights* even, DotWeights* odd) {
  const DotWeights both = hn::Load(Byte16Tag(), weights);
  *even = hn::And(both, hn::Set(Byte16Tag(), 15));
  *odd = hn::ShiftRight<4>(both);
}
HWY_INLINE DotSum StartSum(Int4Vec start) { return start; }
// kSignedWeights: weights are signed and inputs are not; else the other way round.
template <bool kSignedWeights>
HWY_INLINE DotSum AddProducts(DotSum sum, DotWeights w, DotInputs x) {
  const auto as_signed = hn::BitCast(Sbyte16Tag(), kSignedWeights ? w : x);
  const auto as_unsigned = kSignedWeights ? x : w;
#if defined(__wasm_relaxed_simd__)
  return Int4Vec{
      wasm_i32x4_relaxed_dot_i8x16_i7x16_add(as_signed.raw, as_unsigned.raw, sum.raw)};
#else
  return hn::SumOfMulQuadAccumulate(kInt4Tag, as_unsigned, as_signed, sum);
#endif
}
HWY_INLINE Int4Vec FinishSum(DotSum sum) { return sum; }

#endif

}  // namespace kvasm

#endif  // KVASM_KERNELS_DOT_I8_H_
