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

// How four products get into a lane.
enum class DotMode {
  kQuads,  // By one instruction: ARM's sdot, x86's vpdpbusd, or what stands in for
           // them.
  // Two by x86's vpmaddubsw, and those once more. Without vpdpbusd that is what the one
  // instruction is made of, too, but then pairs of 4-bit weights can be added up in 16
  // bits over a whole group, and constants need not be made anew each time. Measured in
  // wasm on Zen 4, one row, GPT-2's layers: kQ8 4.8 ms against 6.1, kQ4 2.8
  // against 3.9.
  kPairs,
};

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

HWY_INLINE DotMode FastestDotMode() { return DotMode::kQuads; }

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
HWY_INLINE DotSum ZeroSum() {
  return {wasm_i32x4_const_splat(0), wasm_i32x4_const_splat(0)};
}
template <DotMode kMode, bool kSignedWeights>
HWY_INLINE DotSum AddProducts(DotSum sum, DotWeights w, DotInputs x) {
  return {wasm_i32x4_add(sum.low, wasm_i32x4_dot_i16x8(w.low, x.quad_twice)),
          wasm_i32x4_add(sum.high, wasm_i32x4_dot_i16x8(w.high, x.quad_twice))};
}
template <DotMode kMode, bool kSignedWeights>
HWY_INLINE Int4Vec FinishSum(DotSum sum) {
  return Int4Vec{wasm_i32x4_add(wasm_i32x4_shuffle(sum.low, sum.high, 0, 2, 4, 6),
                                wasm_i32x4_shuffle(sum.low, sum.high, 1, 3, 5, 7))};
}

#else

// The products take an operand in 0 .. 127: activations with 64 added for kQ8, the
// weights for kQ4. By what that makes a sum too large, the packed weights say.
using DotInput = uint8_t;
inline constexpr int kQ8InputZero = 64;

using Byte16Tag = hn::FixedTag<uint8_t, 16>;
using SignedByte16Tag = hn::FixedTag<int8_t, 16>;
using DotInputs = hn::Vec<Byte16Tag>;
using DotWeights = hn::Vec<Byte16Tag>;
using DotSum = Int4Vec;

HWY_INLINE DotMode FastestDotMode() {
#if defined(__wasm_relaxed_simd__)
  // Volatile, since wasm-opt aborts on the instruction with constant operands.
  static const volatile uint8_t beyond = 255;
  // What the instruction does with an operand beyond 127 tells what it is: sdot takes
  // it for negative, vpdpbusd does not, and only vpmaddubsw saturates.
  const v128_t sum = wasm_i32x4_relaxed_dot_i8x16_i7x16_add(
      wasm_i8x16_const_splat(127), wasm_u8x16_splat(beyond), wasm_i32x4_const_splat(0));
  if (wasm_i32x4_extract_lane(sum, 0) == 2 * INT16_MAX) return DotMode::kPairs;
#endif
  return DotMode::kQuads;
}

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
HWY_INLINE DotSum ZeroSum() { return hn::Zero(kInt4Tag); }

// kSignedWeights: weights are signed and inputs are not; else the other way round.
template <DotMode kMode, bool kSignedWeights>
HWY_INLINE DotSum AddProducts(DotSum sum, DotWeights w, DotInputs x) {
  const auto as_signed = hn::BitCast(SignedByte16Tag(), kSignedWeights ? w : x);
  const auto as_unsigned = kSignedWeights ? x : w;
#if defined(__wasm_relaxed_simd__)
  if constexpr (kMode == DotMode::kPairs) {
    const v128_t pairs =
        wasm_i16x8_relaxed_dot_i8x16_i7x16(as_signed.raw, as_unsigned.raw);
    if constexpr (kSignedWeights) {
      return Int4Vec{wasm_i32x4_add(
          sum.raw, wasm_i32x4_dot_i16x8(pairs, wasm_i16x8_const_splat(1)))};
    }
    // A group's 8 pairs of 15 * 127 at the most, twice, are below 2^15.
    return Int4Vec{wasm_i16x8_add(sum.raw, pairs)};
  }
  return Int4Vec{
      wasm_i32x4_relaxed_dot_i8x16_i7x16_add(as_signed.raw, as_unsigned.raw, sum.raw)};
#else
  return hn::SumOfMulQuadAccumulate(kInt4Tag, as_unsigned, as_signed, sum);
#endif
}
template <DotMode kMode, bool kSignedWeights>
HWY_INLINE Int4Vec FinishSum(DotSum sum) {
#if defined(__wasm_relaxed_simd__)
  if constexpr (kMode == DotMode::kPairs && !kSignedWeights) {
    return Int4Vec{wasm_i32x4_dot_i16x8(sum.raw, wasm_i16x8_const_splat(1))};
  }
#endif
  return sum;
}

#endif

}  // namespace kvasm

#endif  // KVASM_KERNELS_DOT_I8_H_
