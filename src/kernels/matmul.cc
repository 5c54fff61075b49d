#include "kernels/matmul.h"

#include "kernels/simd.h"

namespace kvasm {
namespace {

// Columns of one panel for kRows rows. The sums live in registers: 3 rows x 4 vectors
// of 4 lanes, the panel's 4 vectors and one broadcast just overflow the 16 registers of
// x86, which reads one operand from memory instead.
template <size_t kRows>
HWY_INLINE void MatMulPanel(const float* HWY_RESTRICT x, size_t x_stride,
                            const float* HWY_RESTRICT panel, size_t n_in,
                            const float* HWY_RESTRICT bias, float* HWY_RESTRICT out,
                            size_t out_stride) {
  FloatVec sum[kRows][kVectorsPerGroup];
  for (size_t r = 0; r < kRows; ++r) {
    for (size_t v = 0; v < kVectorsPerGroup; ++v) sum[r][v] = hn::Zero(kFloatTag);
  }
  for (size_t k = 0; k < n_in; ++k) {
    FloatVec w[kVectorsPerGroup];
    for (size_t v = 0; v < kVectorsPerGroup; ++v) {
      w[v] = hn::Load(kFloatTag, panel + k * kPanel + v * kLanes);
    }
    for (size_t r = 0; r < kRows; ++r) {
      const FloatVec xk = hn::Set(kFloatTag, x[r * x_stride + k]);
      for (size_t v = 0; v < kVectorsPerGroup; ++v) {
        sum[r][v] = hn::MulAdd(xk, w[v], sum[r][v]);
      }
    }
  }
  for (size_t r = 0; r < kRows; ++r) {
    for (size_t v = 0; v < kVectorsPerGroup; ++v) {
      FloatVec y = sum[r][v];
      if (bias != nullptr) y = hn::Add(y, hn::Load(kFloatTag, bias + v * kLanes));
      hn::Store(y, kFloatTag, out + r * out_stride + v * kLanes);
    }
  }
}

// One row, two panels: twice the independent sums, so that the latency of the additions
// does not bound a decode step.
HWY_INLINE void MatVecTwoPanels(const float* HWY_RESTRICT x,
                                const float* HWY_RESTRICT panel, size_t n_in,
                                const float* HWY_RESTRICT bias,
                                float* HWY_RESTRICT out) {
  constexpr size_t kVectors = 2 * kVectorsPerGroup;
  FloatVec sum[kVectors];
  for (size_t v = 0; v < kVectors; ++v) sum[v] = hn::Zero(kFloatTag);
  const float* panels[2] = {panel, panel + n_in * kPanel};
  for (size_t k = 0; k < n_in; ++k) {
    const FloatVec xk = hn::Set(kFloatTag, x[k]);
    for (size_t v = 0; v < kVectors; ++v) {
      const float* w = panels[v / kVectorsPerGroup] + k * kPanel;
      sum[v] = hn::MulAdd(xk, hn::Load(kFloatTag, w + v % kVectorsPerGroup * kLanes),
                          sum[v]);
    }
  }
  for (size_t v = 0; v < kVectors; ++v) {
    if (bias != nullptr) {
      sum[v] = hn::Add(sum[v], hn::Load(kFloatTag, bias + v * kLanes));
    }
    hn::Store(sum[v], kFloatTag, out + v * kLanes);
  }
}

}  // namespace

void MatMul(const float* x, size_t rows, size_t x_stride, const PackedMatrix& w,
            const float* bias, float* out, size_t out_stride) {
  const size_t n_in = w.n_in();
  const size_t panels = w.panels();
  size_t p = 0;
  if (rows == 1) {
    for (; p + 2 <= panels; p += 2) {
      MatVecTwoPanels(x, w.Panel(p), n_in, bias ? bias + p * kPanel : nullptr,
                      out + p * kPanel);
    }
  }
  // Panels outside, rows inside: a panel (48 KB at n_in = 768) stays in cache while all
  // rows use it.
  for (; p < panels; ++p) {
    const float* panel = w.Panel(p);
    const float* panel_bias = bias ? bias + p * kPanel : nullptr;
    size_t r = 0;
    for (; r + 3 <= rows; r += 3) {
      MatMulPanel<3>(x + r * x_stride, x_stride, panel, n_in, panel_bias,
                     out + r * out_stride + p * kPanel, out_stride);
    }
    for (; r < rows; ++r) {
      MatMulPanel<1>(x + r * x_stride, x_stride, panel, n_in, panel_bias,
                     out + r * out_stride + p * kPanel, out_stride);
    }
  }
}

void NaiveMatMul(const float* x, size_t rows, size_t x_stride, const PackedMatrix& w,
                 const float* bias, float* out, size_t out_stride) {
  for (size_t r = 0; r < rows; ++r) {
    for (size_t o = 0; o < w.n_out(); ++o) {
      float sum = 0.0f;
      for (size_t k = 0; k < w.n_in(); ++k) {
        sum = ScalarMulAdd(x[r * x_stride + k], w.At(k, o), sum);
      }
      out[r * out_stride + o] = bias ? sum + bias[o] : sum;
    }
  }
}

}  // namespace kvasm
