#include "kernels/dot_i8.h"
#include "kernels/matmul.h"
#include "kernels/simd.h"

namespace kvasm {
namespace {

constexpr size_t kVectors = kPanel / 4;

// [4] bfloat16
HWY_INLINE Float4Vec LoadScales(const uint8_t* scales) {
  const hn::Rebind<uint16_t, Int4Tag> half;
  const hn::Rebind<uint32_t, Int4Tag> word;
  const auto bits = hn::Load(half, reinterpret_cast<const uint16_t*>(scales));
  return hn::BitCast(kFloat4Tag, hn::ShiftLeft<16>(hn::PromoteTo(word, bits)));
}

// What takes back the zero that was added to the activations for kQ8.
HWY_INLINE Int4Vec LoadQ8Correction(const uint8_t* group, size_t v) {
  if constexpr (kQ8InputZero == 0) return hn::Zero(kInt4Tag);
  static_assert(kQ8InputZero == 0 || kQ8InputZero == 64);
  const hn::Rebind<int16_t, Int4Tag> half;
  const uint8_t* sums = group + kQ8SumsOffset + v * 4 * sizeof(int16_t);
  const auto minus_sum = hn::Load(half, reinterpret_cast<const int16_t*>(sums));
  return hn::ShiftLeft<6>(hn::PromoteTo(kInt4Tag, minus_sum));
}

template <WeightDtype kDtype>
inline constexpr size_t kGroupBytes =
    kDtype == WeightDtype::kQ8 ? kQ8GroupBytes : kQ4GroupBytes;
template <WeightDtype kDtype>
inline constexpr size_t kScalesOffset =
    kDtype == WeightDtype::kQ8 ? kQ8ScalesOffset : kQ4ScalesOffset;

// The weights of two quads of inputs, and of all of a group's.
template <WeightDtype kDtype>
inline constexpr size_t kTwoQuadsBytes = (kDtype == WeightDtype::kQ8 ? 2 : 1) * kVectors
                                         * 16;
template <WeightDtype kDtype>
inline constexpr size_t kProductBytes = kQuantGroup / 8 * kTwoQuadsBytes<kDtype>;

// Vectors first .. first + kCount - 1 of a panel, for kRows rows from `row` on.
//
// The inner loop has few loads, and pointers that move on: V8 puts all loads of a
// loop's body before its arithmetic, so that an unrolled one overflows the 16 registers
// of x86. Measured in wasm by kPairs, one row, 10^9 products a second for kQ8 / kQ4: 36
// / 43, against 26 / 33 for the loop over indices that the compiler unrolled.
template <WeightDtype kDtype, DotMode kMode, size_t kRows, size_t kCount>
HWY_INLINE void Tile(const QuantizedRows& x, size_t row, size_t groups,
                     const uint8_t* HWY_RESTRICT panel, size_t first,
                     const float* HWY_RESTRICT bias, float* HWY_RESTRICT out,
                     size_t out_stride) {
  constexpr bool kQ8 = kDtype == WeightDtype::kQ8;
  Float4Vec total[kRows][kCount];
  const DotInput* rows[kRows];
  const float* scales[kRows];
  const int32_t* corrections[kRows];
  for (size_t r = 0; r < kRows; ++r) {
    rows[r] = x.Values(row + r);
    scales[r] = x.Scales(row + r);
    corrections[r] = x.Corrections(row + r);
    for (size_t v = 0; v < kCount; ++v) total[r][v] = hn::Zero(kFloat4Tag);
  }
  for (size_t g = 0; g < groups; ++g) {
    const uint8_t* group = panel + g * kGroupBytes<kDtype>;
    DotSum sum[kRows][kCount];
    for (size_t r = 0; r < kRows; ++r) {
      for (size_t v = 0; v < kCount; ++v) sum[r][v] = ZeroSum();
    }
    const uint8_t* w = group + first * 16;
    const uint8_t* w_end = w + kProductBytes<kDtype>;
    const DotInput* inputs[kRows];
    for (size_t r = 0; r < kRows; ++r) inputs[r] = rows[r] + g * kQuantGroup;
#if HWY_COMPILER_CLANG
#pragma clang loop unroll(disable)
#endif
    for (; w != w_end; w += kTwoQuadsBytes<kDtype>) {
      DotWeights even[kCount];
      DotWeights odd[kCount];
      for (size_t v = 0; v < kCount; ++v) {
        if constexpr (kQ8) {
          even[v] = LoadQ8(w + v * 16);
          odd[v] = LoadQ8(w + (kVectors + v) * 16);
        } else {
          LoadQ4(w + v * 16, &even[v], &odd[v]);
        }
      }
      for (size_t r = 0; r < kRows; ++r) {
        const DotInputs x_even = LoadInputs(inputs[r]);
        const DotInputs x_odd = LoadInputs(inputs[r] + 4);
        inputs[r] += 8;
        for (size_t v = 0; v < kCount; ++v) {
          sum[r][v] = AddProducts<kMode, kQ8>(sum[r][v], even[v], x_even);
          sum[r][v] = AddProducts<kMode, kQ8>(sum[r][v], odd[v], x_odd);
        }
      }
    }
    for (size_t v = 0; v < kCount; ++v) {
      const Float4Vec w_scale = LoadScales(group + kScalesOffset<kDtype> +
                                           (first + v) * 4 * sizeof(uint16_t));
      const Int4Vec w_correction =
          kQ8 ? LoadQ8Correction(group, first + v) : hn::Zero(kInt4Tag);
      for (size_t r = 0; r < kRows; ++r) {
        const Int4Vec correction =
            kQ8 ? w_correction : hn::Set(kInt4Tag, corrections[r][g]);
        const Int4Vec exact = hn::Add(FinishSum<kMode, kQ8>(sum[r][v]), correction);
        const Float4Vec scale = hn::Mul(w_scale, hn::Set(kFloat4Tag, scales[r][g]));
        total[r][v] = MultiplyAdd(hn::ConvertTo(kFloat4Tag, exact), scale, total[r][v]);
      }
    }
  }
  for (size_t r = 0; r < kRows; ++r) {
    for (size_t v = 0; v < kCount; ++v) {
      const size_t o = (first + v) * 4;
      Float4Vec y = total[r][v];
      if (bias != nullptr) y = hn::Add(y, hn::Load(kFloat4Tag, bias + o));
      hn::Store(y, kFloat4Tag, out + r * out_stride + o);
    }
  }
}

// For one row. Without relaxed SIMD an output takes two lanes of sums, and those of a
// whole panel leave too few registers to unpack 4 bits in: 5.0 ms against 7.0.
template <WeightDtype kDtype>
inline constexpr size_t kOneRowCount = kDtype == WeightDtype::kQ4 &&
                                               sizeof(DotSum) > sizeof(Int4Vec)
                                           ? 2
                                           : kVectors;

// Rows from *row on, while there are kRows of them.
template <WeightDtype kDtype, DotMode kMode, size_t kRows, size_t kCount>
HWY_INLINE void Rows(const MatMulInput& x, size_t* row, size_t groups,
                     const uint8_t* panel, const float* bias, float* out,
                     size_t out_stride) {
  for (; *row + kRows <= x.rows; *row += kRows) {
    for (size_t v = 0; v < kVectors; v += kCount) {
      Tile<kDtype, kMode, kRows, kCount>(*x.quantized, *row, groups, panel, v, bias,
                                         out + *row * out_stride, out_stride);
    }
  }
}

// Measured in wasm at GPT-2's shapes, 60 rows, in 10^9 products a second for kQ8 / kQ4
// by kPairs: tiles of 2 rows x 2 vectors 39 / 48, 2 x 4 40 / 49, 3 x 4 39 / 51, 4 x 2
// 39 / 47; without relaxed SIMD 25 / 23, 22 / 24, 24 / 24, 25 / 25. Weights of 7 bits,
// whose products could be added up by fours in 16 bits, would give 44.
template <WeightDtype kDtype>
inline constexpr bool kFourRows = kDtype == WeightDtype::kQ8 ||
                                  sizeof(DotSum) > sizeof(Int4Vec);

template <WeightDtype kDtype, DotMode kMode>
void Panels(const MatMulInput& x, const PackedMatrix& w, size_t begin, size_t end,
            const float* bias, float* out, size_t out_stride) {
  const size_t groups = w.groups();
  for (size_t p = begin; p < end; ++p) {
    const uint8_t* panel = w.QuantizedPanel(p);
    const float* panel_bias = bias ? bias + p * kPanel : nullptr;
    float* panel_out = out + p * kPanel;
    size_t row = 0;
    if constexpr (kFourRows<kDtype>) {
      Rows<kDtype, kMode, 4, 2>(x, &row, groups, panel, panel_bias, panel_out,
                                out_stride);
    }
    Rows<kDtype, kMode, 3, 4>(x, &row, groups, panel, panel_bias, panel_out,
                              out_stride);
    Rows<kDtype, kMode, 2, 4>(x, &row, groups, panel, panel_bias, panel_out,
                              out_stride);
    Rows<kDtype, kMode, 1, kOneRowCount<kDtype>>(x, &row, groups, panel, panel_bias,
                                                 panel_out, out_stride);
  }
}

template <DotMode kMode>
void PanelsOfDtype(const MatMulInput& x, const PackedMatrix& w, size_t begin,
                   size_t end, const float* bias, float* out, size_t out_stride) {
  if (w.dtype() == WeightDtype::kQ8) {
    Panels<WeightDtype::kQ8, kMode>(x, w, begin, end, bias, out, out_stride);
  } else {
    Panels<WeightDtype::kQ4, kMode>(x, w, begin, end, bias, out, out_stride);
  }
}

}  // namespace

void QuantizedMatMulPanels(const MatMulInput& x, const PackedMatrix& w, size_t begin,
                           size_t end, const float* bias, float* out,
                           size_t out_stride) {
#if defined(__wasm_relaxed_simd__)
  if (FastestDotMode() == DotMode::kPairs) {
    PanelsOfDtype<DotMode::kPairs>(x, w, begin, end, bias, out, out_stride);
    return;
  }
#endif
  PanelsOfDtype<DotMode::kQuads>(x, w, begin, end, bias, out, out_stride);
}

}  // namespace kvasm
