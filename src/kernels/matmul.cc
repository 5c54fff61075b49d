#include "kernels/matmul.h"

#include <algorithm>

#include "base/float16.h"
#include "kernels/simd.h"

namespace kvasm {
namespace {

// Measured in wasm at GPT-2's shapes, CPU time of a forward pass of 4 / 8 / 512 rows:
// tiles of 2 rows 37 / 71 / 2779 ms, of 3 rows 41 / 79 / 3809, of 4 rows 41 / 80 /
// 3460. A tile has 4 vectors a row, and x86 has 16 registers; larger tiles seem to
// spill. For 4 rows, tiles of 4 x 3 and 4 x 1 vectors are worse (44), twice 4 x 2 is no
// better. Unrolling the loop over the inputs by 2 or 4 is worse, too.
constexpr size_t kTileRows = 2;

// For few rows, the weights come from memory: taking the inputs in chunks of a panel
// lets all rows use what has just been read, instead of leaving memory idle in a second
// pass over the panel. Chunks of 32 are as good for 4 rows, 128 are worse (49 against
// 36 ms); for 8 rows, no chunks are best.
constexpr size_t kFewRows = 4;
constexpr size_t kFewRowsChunk = 64;

// What a thread claims at a time: 384 KB of floats at n_in = 768, and an even number,
// for MatVecTwoPanels.
constexpr size_t kPanelsPerPiece = 8;

// Adds inputs begin .. end-1 of one panel to the sums of kRows rows, which `out` holds
// in between: from zero at the first input, with the bias after the last.
template <size_t kRows>
HWY_INLINE void AddInputs(const float* HWY_RESTRICT x, size_t x_stride,
                          const float* HWY_RESTRICT panel, size_t begin, size_t end,
                          size_t n_in, const float* HWY_RESTRICT bias,
                          float* HWY_RESTRICT out, size_t out_stride) {
  FloatVec sum[kRows][kVectorsPerGroup];
  for (size_t r = 0; r < kRows; ++r) {
    for (size_t v = 0; v < kVectorsPerGroup; ++v) {
      sum[r][v] = begin == 0 ? hn::Zero(kFloatTag)
                             : hn::Load(kFloatTag, out + r * out_stride + v * kLanes);
    }
  }
  for (size_t k = begin; k < end; ++k) {
    FloatVec w[kVectorsPerGroup];
    for (size_t v = 0; v < kVectorsPerGroup; ++v) {
      w[v] = hn::Load(kFloatTag, panel + k * kPanel + v * kLanes);
    }
    for (size_t r = 0; r < kRows; ++r) {
      const FloatVec xk = hn::Set(kFloatTag, x[r * x_stride + k]);
      for (size_t v = 0; v < kVectorsPerGroup; ++v) {
        sum[r][v] = MultiplyAdd(xk, w[v], sum[r][v]);
      }
    }
  }
  const bool add_bias = end == n_in && bias != nullptr;
  for (size_t r = 0; r < kRows; ++r) {
    for (size_t v = 0; v < kVectorsPerGroup; ++v) {
      FloatVec y = sum[r][v];
      if (add_bias) y = hn::Add(y, hn::Load(kFloatTag, bias + v * kLanes));
      hn::Store(y, kFloatTag, out + r * out_stride + v * kLanes);
    }
  }
}

// One panel for all rows, chunk by chunk of the inputs.
void MatMulPanel(const float* x, size_t rows, size_t x_stride, const float* panel,
                 size_t n_in, size_t chunk, const float* bias, float* out,
                 size_t out_stride) {
  for (size_t begin = 0; begin < n_in; begin += chunk) {
    const size_t end = std::min(begin + chunk, n_in);
    size_t r = 0;
    for (; r + kTileRows <= rows; r += kTileRows) {
      AddInputs<kTileRows>(x + r * x_stride, x_stride, panel, begin, end, n_in, bias,
                           out + r * out_stride, out_stride);
    }
    for (; r < rows; ++r) {
      AddInputs<1>(x + r * x_stride, x_stride, panel, begin, end, n_in, bias,
                   out + r * out_stride, out_stride);
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
      sum[v] = MultiplyAdd(xk, hn::Load(kFloatTag, w + v % kVectorsPerGroup * kLanes),
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

float NaiveDot(const float* x, const PackedMatrix& w, size_t out) {
  float sum = 0.0f;
  for (size_t k = 0; k < w.n_in(); ++k) sum = ScalarMulAdd(x[k], w.At(k, out), sum);
  return sum;
}

float NaiveQuantizedDot(const QuantizedRows& x, size_t row, const PackedMatrix& w,
                        size_t out) {
  float total = 0.0f;
  for (size_t g = 0; g < w.groups(); ++g) {
    const QuantizedGroup group = w.Group(g, out);
    int sum = 0;
    for (size_t i = 0; i < kQuantGroup; ++i) {
      sum += x.At(row, g * kQuantGroup + i, w.dtype()) * group.q[i];
    }
    total = ScalarMulAdd(static_cast<float>(sum),
                         BFloat16ToFloat(group.scale) * x.Scales(row)[g], total);
  }
  return total;
}

}  // namespace

void MatMulPanels(const MatMulInput& x, const PackedMatrix& w, size_t begin, size_t end,
                  const float* bias, float* out, size_t out_stride) {
  if (w.dtype() != WeightDtype::kF32) {
    QuantizedMatMulPanels(x, w, begin, end, bias, out, out_stride);
    return;
  }
  const size_t n_in = w.n_in();
  size_t p = begin;
  if (x.rows == 1) {
    for (; p + 2 <= end; p += 2) {
      MatVecTwoPanels(x.floats, w.FloatPanel(p), n_in,
                      bias ? bias + p * kPanel : nullptr, out + p * kPanel);
    }
  }
  // Panels outside, rows inside: a panel (48 KB at n_in = 768) stays in cache while all
  // rows use it.
  const size_t chunk = x.rows <= kFewRows ? kFewRowsChunk : n_in;
  for (; p < end; ++p) {
    MatMulPanel(x.floats, x.rows, x.stride, w.FloatPanel(p), n_in, chunk,
                bias ? bias + p * kPanel : nullptr, out + p * kPanel, out_stride);
  }
}

void MatMul(const MatMulInput& x, const PackedMatrix& w, const float* bias, float* out,
            size_t out_stride, ThreadPool* pool) {
  const size_t panels = w.panels();
  const size_t pieces = (panels + kPanelsPerPiece - 1) / kPanelsPerPiece;
  ParallelFor(pool, pieces, [&](size_t piece) {
    const size_t begin = piece * kPanelsPerPiece;
    MatMulPanels(x, w, begin, std::min(begin + kPanelsPerPiece, panels), bias, out,
                 out_stride);
  });
}

void NaiveMatMul(const MatMulInput& x, const PackedMatrix& w, const float* bias,
                 float* out, size_t out_stride) {
  for (size_t r = 0; r < x.rows; ++r) {
    for (size_t o = 0; o < w.n_out(); ++o) {
      const float sum = w.dtype() == WeightDtype::kF32
                            ? NaiveDot(x.floats + r * x.stride, w, o)
                            : NaiveQuantizedDot(*x.quantized, r, w, o);
      out[r * out_stride + o] = bias ? sum + bias[o] : sum;
    }
  }
}

}  // namespace kvasm
