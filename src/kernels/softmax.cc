#include "kernels/softmax.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/exp.h"
#include "kernels/simd.h"

namespace kvasm {

static_assert(kBlockTokens == kGroup);

void Softmax(KeyRange range, float* scores) {
  constexpr float kLowest = -std::numeric_limits<float>::infinity();
  const size_t first = range.first_block() * kBlockTokens;
  const size_t end = range.end_block() * kBlockTokens;
  // Nothing but whole blocks from here on: e to the power of these is 0.
  std::fill(scores + first, scores + range.begin, kLowest);
  std::fill(scores + range.end, scores + end, kLowest);

  FloatVec max_v = hn::Set(kFloatTag, kLowest);
  for (size_t j = first; j < end; j += kLanes) {
    max_v = hn::Max(max_v, hn::Load(kFloatTag, scores + j));
  }
  const FloatVec max = hn::Set(kFloatTag, hn::ReduceMax(kFloatTag, max_v));

  // 16 sums whatever the vector length.
  FloatVec sum[kVectorsPerGroup];
  for (size_t v = 0; v < kVectorsPerGroup; ++v) sum[v] = hn::Zero(kFloatTag);
  for (size_t j = first; j < end; j += kBlockTokens) {
    for (size_t v = 0; v < kVectorsPerGroup; ++v) {
      float* s = scores + j + v * kLanes;
      const FloatVec e = Exp(hn::Sub(hn::Load(kFloatTag, s), max));
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

}  // namespace kvasm
