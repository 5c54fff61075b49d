#include "kernels/attention.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>

#include "base/float16.h"
#include "kernels/simd.h"
// After simd.h, which selects static dispatch.
#include "hwy/contrib/math/math-inl.h"

namespace kvasm {

static_assert(kBlockTokens == kGroup);

namespace {

// kLanes elements as floats, without their scale.
HWY_INLINE FloatVec LoadFloats(const float* from) { return hn::LoadU(kFloatTag, from); }
HWY_INLINE FloatVec LoadFloats(const hwy::float16_t* from) {
  const hn::Rebind<hwy::float16_t, FloatTag> half;
  return hn::PromoteTo(kFloatTag, hn::LoadU(half, from));
}
HWY_INLINE FloatVec LoadFloats(const int8_t* from) {
  const hn::Rebind<int8_t, FloatTag> byte;
  const hn::RebindToSigned<FloatTag> word;
  return hn::ConvertTo(kFloatTag, hn::PromoteTo(word, hn::LoadU(byte, from)));
}

// Calls body(element) with a pointer of the type that `dtype` stores.
template <class Body>
HWY_INLINE void WithElementType(KvDtype dtype, Body body) {
  switch (dtype) {
    case KvDtype::kF32:
      body(static_cast<const float*>(nullptr));
      break;
    case KvDtype::kF16:
      body(static_cast<const hwy::float16_t*>(nullptr));
      break;
    case KvDtype::kQ8:
      body(static_cast<const int8_t*>(nullptr));
      break;
  }
}

// The 16 scales of a head's area, or null where the dtype has none.
HWY_INLINE const float* ScalesOf(const KvHead& head, size_t block) {
  if (head.dtype != KvDtype::kQ8) return nullptr;
  return reinterpret_cast<const float*>(head.Area(block) +
                                        kBlockTokens * head.head_dim);
}

// Which lanes of the vector at position `first` are in range.
HWY_INLINE hn::Mask<FloatTag> Visible(KeyRange range, size_t first) {
  const hn::RebindToSigned<FloatTag> di;
  const auto position = hn::Iota(di, static_cast<int>(first));
  const auto begin = hn::Set(di, static_cast<int>(range.begin));
  const auto end = hn::Set(di, static_cast<int>(range.end));
  return hn::RebindMask(
      kFloatTag, hn::And(hn::Not(hn::Lt(position, begin)), hn::Lt(position, end)));
}

// Scores of kBlocks blocks from `first` on.
template <size_t kBlocks, class Element>
HWY_INLINE void BlockScores(const float* HWY_RESTRICT q, const KvHead& keys,
                            size_t first, float scale, float* HWY_RESTRICT scores) {
  const Element* HWY_RESTRICT elements[kBlocks];
  FloatVec sum[kBlocks][kVectorsPerGroup];
  for (size_t b = 0; b < kBlocks; ++b) {
    elements[b] = reinterpret_cast<const Element*>(keys.Area(first + b));
    for (size_t v = 0; v < kVectorsPerGroup; ++v) sum[b][v] = hn::Zero(kFloatTag);
  }
  for (size_t d = 0; d < keys.head_dim; ++d) {
    const FloatVec qd = hn::Set(kFloatTag, q[d]);
    for (size_t b = 0; b < kBlocks; ++b) {
      for (size_t v = 0; v < kVectorsPerGroup; ++v) {
        const FloatVec k = LoadFloats(elements[b] + d * kBlockTokens + v * kLanes);
        sum[b][v] = MultiplyAdd(qd, k, sum[b][v]);
      }
    }
  }
  const FloatVec scale_v = hn::Set(kFloatTag, scale);
  for (size_t b = 0; b < kBlocks; ++b) {
    const float* token_scales = ScalesOf(keys, first + b);
    for (size_t v = 0; v < kVectorsPerGroup; ++v) {
      FloatVec s = sum[b][v];
      if (token_scales) {
        s = hn::Mul(s, hn::LoadU(kFloatTag, token_scales + v * kLanes));
      }
      hn::Store(hn::Mul(s, scale_v), kFloatTag,
                scores + (first + b) * kBlockTokens + v * kLanes);
    }
  }
}

// Two blocks at a time: with 8 sums under way, additions need not wait for each other.
// Measured in wasm, all heads of 512 queries: scores 18 ms a layer against 24, values
// by 8 vectors at a time instead of 4 20 against 26. Tiles of 2, 3 or 4 queries that
// share the loads of keys and values are slower than one query after the other.
template <class Element>
HWY_INLINE void Scores(const float* q, const KvHead& keys, KeyRange range, float scale,
                       float* scores) {
  size_t b = range.first_block();
  for (; b + 2 <= range.end_block(); b += 2) {
    BlockScores<2, Element>(q, keys, b, scale, scores);
  }
  if (b < range.end_block()) BlockScores<1, Element>(q, keys, b, scale, scores);
}

// Values of dims dim .. dim + kVectors * kLanes - 1 over all visible tokens.
template <size_t kVectors, class Element>
HWY_INLINE void ValueColumns(const float* HWY_RESTRICT probabilities,
                             const KvHead& values, size_t dim, KeyRange range,
                             float* HWY_RESTRICT out) {
  FloatVec sum[kVectors];
  for (size_t v = 0; v < kVectors; ++v) sum[v] = hn::Zero(kFloatTag);
  for (size_t j = range.begin; j < range.end;) {
    const size_t block = j / kBlockTokens;
    const float* token_scales = ScalesOf(values, block);
    const Element* row = reinterpret_cast<const Element*>(values.Area(block)) +
                         j % kBlockTokens * values.head_dim + dim;
    const size_t block_end = std::min(range.end, (block + 1) * kBlockTokens);
    for (; j < block_end; ++j, row += values.head_dim) {
      float weight = probabilities[j];
      if (token_scales) weight *= token_scales[j % kBlockTokens];
      const FloatVec p = hn::Set(kFloatTag, weight);
      for (size_t v = 0; v < kVectors; ++v) {
        sum[v] = MultiplyAdd(p, LoadFloats(row + v * kLanes), sum[v]);
      }
    }
  }
  for (size_t v = 0; v < kVectors; ++v) {
    hn::StoreU(sum[v], kFloatTag, out + dim + v * kLanes);
  }
}

template <class Element>
HWY_INLINE void Values(const float* probabilities, const KvHead& values, KeyRange range,
                       float* out) {
  const size_t head_dim = values.head_dim;
  size_t d = 0;
  for (; d + 8 * kLanes <= head_dim; d += 8 * kLanes) {
    ValueColumns<8, Element>(probabilities, values, d, range, out);
  }
  for (; d + 4 * kLanes <= head_dim; d += 4 * kLanes) {
    ValueColumns<4, Element>(probabilities, values, d, range, out);
  }
  for (; d + kLanes <= head_dim; d += kLanes) {
    ValueColumns<1, Element>(probabilities, values, d, range, out);
  }
  if (d == head_dim) return;
  if (head_dim >= kLanes) {
    // The last vector once more, shifted to end at head_dim: the overlap gets the same
    // bits again.
    ValueColumns<1, Element>(probabilities, values, head_dim - kLanes, range, out);
  } else {
    NaiveAttentionValues(probabilities, values, range, out);
  }
}

// An element as stored, and what multiplies it.
struct Unscaled {
  float element;
  float scale;
};

Unscaled LoadUnscaled(const KvHead& head, size_t block, size_t slot, size_t at) {
  const uint8_t* area = head.Area(block);
  switch (head.dtype) {
    case KvDtype::kF32:
      return {reinterpret_cast<const float*>(area)[at], 1};
    case KvDtype::kF16:
      return {Float16ToFloat(reinterpret_cast<const uint16_t*>(area)[at]), 1};
    case KvDtype::kQ8:
      return {static_cast<float>(reinterpret_cast<const int8_t*>(area)[at]),
              ScalesOf(head, block)[slot]};
  }
  return {};
}

}  // namespace

void AttentionScores(const float* q, const KvHead& keys, KeyRange range, float scale,
                     float* scores) {
  WithElementType(keys.dtype, [&](auto* element) {
    Scores<std::remove_cvref_t<decltype(*element)>>(q, keys, range, scale, scores);
  });
}

void AttentionValues(const float* probabilities, const KvHead& values, KeyRange range,
                     float* out) {
  WithElementType(values.dtype, [&](auto* element) {
    Values<std::remove_cvref_t<decltype(*element)>>(probabilities, values, range, out);
  });
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

void NaiveAttentionScores(const float* q, const KvHead& keys, KeyRange range,
                          float scale, float* scores) {
  for (size_t j = range.begin; j < range.end; ++j) {
    const size_t slot = j % kBlockTokens;
    float sum = 0.0f;
    float token_scale = 1;
    for (size_t d = 0; d < keys.head_dim; ++d) {
      const Unscaled k =
          LoadUnscaled(keys, j / kBlockTokens, slot, d * kBlockTokens + slot);
      sum = ScalarMulAdd(q[d], k.element, sum);
      token_scale = k.scale;
    }
    scores[j] = sum * token_scale * scale;
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

void NaiveAttentionValues(const float* probabilities, const KvHead& values,
                          KeyRange range, float* out) {
  for (size_t d = 0; d < values.head_dim; ++d) {
    float sum = 0.0f;
    for (size_t j = range.begin; j < range.end; ++j) {
      const size_t slot = j % kBlockTokens;
      const Unscaled v =
          LoadUnscaled(values, j / kBlockTokens, slot, slot * values.head_dim + d);
      sum = ScalarMulAdd(probabilities[j] * v.scale, v.element, sum);
    }
    out[d] = sum;
  }
}

}  // namespace kvasm
