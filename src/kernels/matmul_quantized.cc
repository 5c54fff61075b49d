#include "kernels/dot_i8.h"
#include "kernels/matmul.h"
#include "kernels/simd.h"

namespace kvasm {
namespace {

constexpr size_t kVectors = kPanel / 4;
constexpr size_t kQuads = kQuantGroup / 4;

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

// Vectors first .. first + kCount - 1 of a panel, for kRows rows from `row` on.
template <WeightDtype kDtype, DotMode kMode, size_t kRows, size_t kCount>
HWY_INLINE void Tile(const QuantizedRows& x, size_t row, size_t groups,
                     const uint8_t* HWY_RESTRICT panel, size_t first,
                     const float* HWY_RESTRICT bias, float* HWY_RESTRICT out,
                     size_t out_stride) {
  constexpr bool kQ8 = kDtype == WeightDtype::kQ8;
  Float4Vec total[kRows][kCount];
  const DotInput* inputs[kRows];
  const float* scales[kRows];
  const int32_t* corrections[kRows];
  for (size_t r = 0; r < kRows; ++r) {
    inputs[r] = x.Values(row + r);
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
    for (size_t quad = 0; quad < kQuads; quad += kQ8 ? 1 : 2) {
      DotInputs even[kRows];
      DotInputs odd[kRows];
      for (size_t r = 0; r < kRows; ++r) {
        even[r] = LoadInputs(inputs[r] + g * kQuantGroup + quad * 4);
        if (!kQ8) odd[r] = LoadInputs(inputs[r] + g * kQuantGroup + quad * 4 + 4);
      }
      for (size_t v = 0; v < kCount; ++v) {
        if constexpr (kQ8) {
          const DotWeights w = LoadQ8(group + (quad * kVectors + first + v) * 16);
          for (size_t r = 0; r < kRows; ++r) {
            sum[r][v] = AddProducts<kMode, true>(sum[r][v], w, even[r]);
          }
        } else {
          DotWeights w_even;
          DotWeights w_odd;
          LoadQ4(group + (quad / 2 * kVectors + first + v) * 16, &w_even, &w_odd);
          for (size_t r = 0; r < kRows; ++r) {
            sum[r][v] = AddProducts<kMode, false>(sum[r][v], w_even, even[r]);
            sum[r][v] = AddProducts<kMode, false>(sum[r][v], w_odd, odd[r]);
          }
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

// Measured in wasm at GPT-2's shapes, 48 rows, in 10^9 products a second for kQ8 / kQ4
// by kPairs: tiles of 2 rows x 2 vectors 22 / 31, 2 x 4 29 / 36, 3 x 4 39 / 47, 4 x 2
// 39 / 45, 6 x 2 35 / 42.
template <WeightDtype kDtype, DotMode kMode>
void Panels(const MatMulInput& x, const PackedMatrix& w, size_t begin, size_t end,
            const float* bias, float* out, size_t out_stride) {
  const size_t groups = w.groups();
  for (size_t p = begin; p < end; ++p) {
    const uint8_t* panel = w.QuantizedPanel(p);
    const float* panel_bias = bias ? bias + p * kPanel : nullptr;
    float* panel_out = out + p * kPanel;
    size_t row = 0;
    Rows<kDtype, kMode, 4, 2>(x, &row, groups, panel, panel_bias, panel_out,
                              out_stride);
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
