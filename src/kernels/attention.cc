#include "kernels/attention.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/simd.h"
// After simd.h, which selects static dispatch.
#include "hwy/contrib/math/math-inl.h"

namespace kvasm {

static_assert(kBlockTokens == kGroup);

namespace {

// Which lanes of the vector at position `first` are in range.
HWY_INLINE hn::Mask<FloatTag> Visible(KeyRange range, size_t first) {
  const hn::RebindToSigned<FloatTag> di;
  const auto position = hn::Iota(di, static_cast<int>(first));
  const auto begin = hn::Set(di, static_cast<int>(range.begin));
  const auto end = hn::Set(di, static_cast<int>(range.end));
  return hn::RebindMask(
      kFloatTag, hn::And(hn::Not(hn::Lt(position, begin)), hn::Lt(position, end)));
}

// Values of dims [0, kVectors * kLanes) over all visible tokens.
template <size_t kVectors>
HWY_INLINE void ValueColumns(const float* HWY_RESTRICT probabilities, size_t head_dim,
                             const float* const* blocks, size_t offset, KeyRange range,
                             float* HWY_RESTRICT out) {
  FloatVec sum[kVectors];
  for (size_t v = 0; v < kVectors; ++v) sum[v] = hn::Zero(kFloatTag);
  for (size_t j = range.begin; j < range.end;) {
    const float* row = blocks[j / kBlockTokens] + offset + j % kBlockTokens * head_dim;
    const size_t block_end = std::min(range.end, (j / kBlockTokens + 1) * kBlockTokens);
    for (; j < block_end; ++j, row += head_dim) {
      const FloatVec p = hn::Set(kFloatTag, probabilities[j]);
      for (size_t v = 0; v < kVectors; ++v) {
        sum[v] = hn::MulAdd(p, hn::LoadU(kFloatTag, row + v * kLanes), sum[v]);
      }
    }
  }
  for (size_t v = 0; v < kVectors; ++v) hn::StoreU(sum[v], kFloatTag, out + v * kLanes);
}

}  // namespace

void AttentionScores(const float* q, size_t head_dim, const float* const* blocks,
                     size_t offset, KeyRange range, float scale, float* scores) {
  const FloatVec scale_v = hn::Set(kFloatTag, scale);
  for (size_t b = range.first_block(); b < range.end_block(); ++b) {
    const float* HWY_RESTRICT keys = blocks[b] + offset;
    FloatVec sum[kVectorsPerGroup];
    for (size_t v = 0; v < kVectorsPerGroup; ++v) sum[v] = hn::Zero(kFloatTag);
    for (size_t d = 0; d < head_dim; ++d) {
      const FloatVec qd = hn::Set(kFloatTag, q[d]);
      for (size_t v = 0; v < kVectorsPerGroup; ++v) {
        sum[v] = hn::MulAdd(
            qd, hn::Load(kFloatTag, keys + d * kBlockTokens + v * kLanes), sum[v]);
      }
    }
    for (size_t v = 0; v < kVectorsPerGroup; ++v) {
      hn::Store(hn::Mul(sum[v], scale_v), kFloatTag,
                scores + b * kBlockTokens + v * kLanes);
    }
  }
}

void Softmax(KeyRange range, float* scores) {
  const size_t first = range.first_block() * kBlockTokens;
  const size_t end = range.end_block() * kBlockTokens;
  const FloatVec lowest = hn::Set(kFloatTag, -std::numeric_limits<float>::infinity());
  FloatVec max_v = lowest;
  for (size_t j = first; j < end; j += kLanes) {
    const FloatVec s = hn::Load(kFloatTag, scores + j);
    max_v = hn::Max(max_v, hn::IfThenElse(Visible(range, j), s, lowest));
  }
  const FloatVec max = hn::Set(kFloatTag, hn::ReduceMax(kFloatTag, max_v));

  // 16 sums whatever the vector length. Adding a masked lane's zero changes no bit.
  FloatVec sum[kVectorsPerGroup];
  for (size_t v = 0; v < kVectorsPerGroup; ++v) sum[v] = hn::Zero(kFloatTag);
  for (size_t j = first; j < end; j += kBlockTokens) {
    for (size_t v = 0; v < kVectorsPerGroup; ++v) {
      float* s = scores + j + v * kLanes;
      const FloatVec e =
          hn::IfThenElseZero(Visible(range, j + v * kLanes),
                             hn::Exp(kFloatTag, hn::Sub(hn::Load(kFloatTag, s), max)));
      hn::Store(e, kFloatTag, s);
      sum[v] = hn::Add(sum[v], e);
    }
  }
  FloatVec total = sum[0];
  for (size_t v = 1; v < kVectorsPerGroup; ++v) total = hn::Add(total, sum[v]);
  const FloatVec inverse = hn::Set(kFloatTag, 1.0f / hn::ReduceSum(kFloatTag, total));
  for (size_t j = first; j < end; j += kLanes) {
    hn::Store(hn::Mul(hn::Load(kFloatTag, scores + j), inverse), kFloatTag, scores + j);
  }
}

void AttentionValues(const float* probabilities, size_t head_dim,
                     const float* const* blocks, size_t offset, KeyRange range,
                     float* out) {
  size_t d = 0;
  for (; d + 4 * kLanes <= head_dim; d += 4 * kLanes) {
    ValueColumns<4>(probabilities, head_dim, blocks, offset + d, range, out + d);
  }
  for (; d + kLanes <= head_dim; d += kLanes) {
    ValueColumns<1>(probabilities, head_dim, blocks, offset + d, range, out + d);
  }
  if (d == head_dim) return;
  if (head_dim >= kLanes) {
    // The last vector once more, shifted to end at head_dim: the overlap gets the same
    // bits again.
    d = head_dim - kLanes;
    ValueColumns<1>(probabilities, head_dim, blocks, offset + d, range, out + d);
  } else {
    NaiveAttentionValues(probabilities, head_dim, blocks, offset, range, out);
  }
}

void NaiveAttentionScores(const float* q, size_t head_dim, const float* const* blocks,
                          size_t offset, KeyRange range, float scale, float* scores) {
  for (size_t j = range.begin; j < range.end; ++j) {
    const float* keys = blocks[j / kBlockTokens] + offset + j % kBlockTokens;
    float sum = 0.0f;
    for (size_t d = 0; d < head_dim; ++d) {
      sum = ScalarMulAdd(q[d], keys[d * kBlockTokens], sum);
    }
    scores[j] = sum * scale;
  }
}

void NaiveSoftmax(KeyRange range, float* scores) {
  double max = scores[range.begin];
  for (size_t j = range.begin; j < range.end; ++j) {
    max = std::max<double>(max, scores[j]);
  }
  double sum = 0;
  for (size_t j = range.begin; j < range.end; ++j) sum += std::exp(scores[j] - max);
  for (size_t j = range.begin; j < range.end; ++j) {
    scores[j] = static_cast<float>(std::exp(scores[j] - max) / sum);
  }
}

void NaiveAttentionValues(const float* probabilities, size_t head_dim,
                          const float* const* blocks, size_t offset, KeyRange range,
                          float* out) {
  for (size_t d = 0; d < head_dim; ++d) {
    float sum = 0.0f;
    for (size_t j = range.begin; j < range.end; ++j) {
      const float* row =
          blocks[j / kBlockTokens] + offset + j % kBlockTokens * head_dim;
      sum = ScalarMulAdd(probabilities[j], row[d], sum);
    }
    out[d] = sum;
  }
}

}  // namespace kvasm
