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

// What the sum of a group starts with, besides a row's own correction: takes back the
// zero that was added to the activations.
template <WeightDtype kDtype>
HWY_INLINE Int4Vec LoadStart(const uint8_t* group, size_t v) {
  if constexpr (kDtype == WeightDtype::kQ8 && kQ8InputZero != 0) {
    static_assert(kQ8InputZero == 0 || kQ8InputZero == 64);
    const hn::Rebind<int16_t, Int4Tag> half;
    const uint8_t* sums = group + kQ8SumsOffset + v * 4 * sizeof(int16_t);
    const auto minus_sum = hn::Load(half, reinterpret_cast<const int16_t*>(sums));
    return hn::ShiftLeft<6>(hn::PromoteTo(kInt4Tag, minus_sum));
  }
  return hn::Zero(kInt4Tag);
}

template <WeightDtype kDtype>
inline constexpr size_t kGroupBytes =
    kDtype == WeightDtype::kQ8 ? kQ8GroupBytes : kQ4GroupBytes;
template <WeightDtype kDtype>
inline constexpr size_t kScalesOffset =
    kDtype == WeightDtype::kQ8 ? kQ8ScalesOffset : kQ4ScalesOffset;

// Vectors first .. first + kCount - 1 of a panel, for kRows rows from `row` on.
template <WeightDtype kDtype, size_t kRows, size_t kCount>
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
    for (size_t v = 0; v < kCount; ++v) {
      const Int4Vec start = LoadStart<kDtype>(group, first + v);
      for (size_t r = 0; r < kRows; ++r) {
        sum[r][v] = StartSum(kQ8 ? start : hn::Set(kInt4Tag, corrections[r][g]));
      }
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
            sum[r][v] = AddProducts<true>(sum[r][v], w, even[r]);
          }
        } else {
          DotWeights w_even;
          DotWeights w_odd;
          LoadQ4(group + (quad / 2 * kVectors + first + v) * 16, &w_even, &w_odd);
          for (size_t r = 0; r < kRows; ++r) {
            sum[r][v] = AddProducts<false>(sum[r][v], w_even, even[r]);
            sum[r][v] = AddProducts<false>(sum[r][v], w_odd, odd[r]);
          }
        }
      }
    }
    for (size_t v = 0; v < kCount; ++v) {
      const Float4Vec w_scale = LoadScales(group + kScalesOffset<kDtype> +
                                           (first + v) * 4 * sizeof(uint16_t));
      for (size_t r = 0; r < kRows; ++r) {
        const Float4Vec scale = hn::Mul(w_scale, hn::Set(kFloat4Tag, scales[r][g]));
        total[r][v] =
            MulAdd(hn::ConvertTo(kFloat4Tag, FinishSum(sum[r][v])), scale, total[r][v]);
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

template <WeightDtype kDtype>
void Panels(const MatMulInput& x, const PackedMatrix& w, size_t begin, size_t end,
            const float* bias, float* out, size_t out_stride) {
  const size_t groups = w.groups();
  for (size_t p = begin; p < end; ++p) {
    const uint8_t* panel = w.QuantizedPanel(p);
    const float* panel_bias = bias ? bias + p * kPanel : nullptr;
    float* panel_out = out + p * kPanel;
    size_t r = 0;
    for (; r + 2 <= x.rows; r += 2) {
      Tile<kDtype, 2, kVectors>(*x.quantized, r, groups, panel, 0, panel_bias,
                                panel_out + r * out_stride, out_stride);
    }
    if (r < x.rows) {
      Tile<kDtype, 1, kVectors>(*x.quantized, r, groups, panel, 0, panel_bias,
                                panel_out + r * out_stride, out_stride);
    }
  }
}

}  // namespace

void QuantizedMatMulPanels(const MatMulInput& x, const PackedMatrix& w, size_t begin,
                           size_t end, const float* bias, float* out,
                           size_t out_stride) {
  if (w.dtype() == WeightDtype::kQ8) {
    Panels<WeightDtype::kQ8>(x, w, begin, end, bias, out, out_stride);
  } else {
    Panels<WeightDtype::kQ4>(x, w, begin, end, bias, out, out_stride);
  }
}

}  // namespace kvasm
