#include "kernels/attention.h"

#include <algorithm>
#include <type_traits>

#include "base/float16.h"
#include "kernels/simd.h"

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

// Scores of kRows queries in kBlocks blocks from `first` on.
template <size_t kRows, size_t kBlocks, class Element>
HWY_INLINE void BlockScores(const float* HWY_RESTRICT q, size_t q_stride,
                            const KvHead& keys, size_t first, float scale,
                            float* HWY_RESTRICT scores, size_t scores_stride) {
  const Element* HWY_RESTRICT elements[kBlocks];
  FloatVec sum[kRows][kBlocks][kVectorsPerGroup];
  for (size_t b = 0; b < kBlocks; ++b) {
    elements[b] = reinterpret_cast<const Element*>(keys.Area(first + b));
    for (size_t r = 0; r < kRows; ++r) {
      for (size_t v = 0; v < kVectorsPerGroup; ++v) sum[r][b][v] = hn::Zero(kFloatTag);
    }
  }
  for (size_t d = 0; d < keys.head_dim; ++d) {
    FloatVec qd[kRows];
    for (size_t r = 0; r < kRows; ++r) qd[r] = hn::Set(kFloatTag, q[r * q_stride + d]);
    for (size_t b = 0; b < kBlocks; ++b) {
      for (size_t v = 0; v < kVectorsPerGroup; ++v) {
        const FloatVec k = LoadFloats(elements[b] + d * kBlockTokens + v * kLanes);
        for (size_t r = 0; r < kRows; ++r) {
          sum[r][b][v] = MultiplyAdd(qd[r], k, sum[r][b][v]);
        }
      }
    }
  }
  const FloatVec scale_v = hn::Set(kFloatTag, scale);
  for (size_t b = 0; b < kBlocks; ++b) {
    const float* token_scales = ScalesOf(keys, first + b);
    for (size_t r = 0; r < kRows; ++r) {
      float* out = scores + r * scores_stride + (first + b) * kBlockTokens;
      for (size_t v = 0; v < kVectorsPerGroup; ++v) {
        FloatVec s = sum[r][b][v];
        if (token_scales) {
          s = hn::Mul(s, hn::LoadU(kFloatTag, token_scales + v * kLanes));
        }
        hn::Store(hn::Mul(s, scale_v), kFloatTag, out + v * kLanes);
      }
    }
  }
}

// Eight sums are under way at a time, so that additions need not wait for each other:
// those of two queries, which share the loads of the keys, or for one those of two
// blocks. Measured in wasm, all heads of a layer, 512 queries: 4.4 ms with two queries
// at a time, 8.2 with one and two blocks; a tile of 4 queries by 8 tokens does not
// differ.
template <class Element>
HWY_INLINE void Scores(const float* q, const KvHead& keys, KeyRange range, float scale,
                       float* scores) {
  size_t b = range.first_block();
  for (; b + 2 <= range.end_block(); b += 2) {
    BlockScores<1, 2, Element>(q, 0, keys, b, scale, scores, 0);
  }
  if (b < range.end_block()) {
    BlockScores<1, 1, Element>(q, 0, keys, b, scale, scores, 0);
  }
}

// Dims dim .. dim + kVectors * kLanes - 1 of kRows sums over the values of `range`:
// sums that begin with it, or, if `resume`, go on with what is in `out`.
template <size_t kRows, size_t kVectors, class Element>
HWY_INLINE void ValueColumns(const float* HWY_RESTRICT probabilities, size_t p_stride,
                             const KvHead& values, size_t dim, KeyRange range,
                             bool resume, float* HWY_RESTRICT out, size_t out_stride) {
  FloatVec sum[kRows][kVectors];
  for (size_t r = 0; r < kRows; ++r) {
    for (size_t v = 0; v < kVectors; ++v) {
      sum[r][v] = resume ? hn::LoadU(kFloatTag, out + r * out_stride + dim + v * kLanes)
                         : hn::Zero(kFloatTag);
    }
  }
  for (size_t j = range.begin; j < range.end;) {
    const size_t block = j / kBlockTokens;
    const float* token_scales = ScalesOf(values, block);
    const Element* row = reinterpret_cast<const Element*>(values.Area(block)) +
                         j % kBlockTokens * values.head_dim + dim;
    const size_t block_end = std::min(range.end, (block + 1) * kBlockTokens);
    for (; j < block_end; ++j, row += values.head_dim) {
      FloatVec p[kRows];
      for (size_t r = 0; r < kRows; ++r) {
        float weight = probabilities[r * p_stride + j];
        if (token_scales) weight *= token_scales[j % kBlockTokens];
        p[r] = hn::Set(kFloatTag, weight);
      }
      for (size_t v = 0; v < kVectors; ++v) {
        const FloatVec value = LoadFloats(row + v * kLanes);
        for (size_t r = 0; r < kRows; ++r) {
          sum[r][v] = MultiplyAdd(p[r], value, sum[r][v]);
        }
      }
    }
  }
  for (size_t r = 0; r < kRows; ++r) {
    for (size_t v = 0; v < kVectors; ++v) {
      hn::StoreU(sum[r][v], kFloatTag, out + r * out_stride + dim + v * kLanes);
    }
  }
}

// All dims, where kLanes divides them. Eight sums at a time, as for the scores: 5.0 ms
// with two queries, 13 with one.
template <size_t kRows, class Element>
HWY_INLINE void WholeValueColumns(const float* probabilities, size_t p_stride,
                                  const KvHead& values, KeyRange range, bool resume,
                                  float* out, size_t out_stride) {
  constexpr size_t kMost = 8 / kRows;
  size_t d = 0;
  for (; d + kMost * kLanes <= values.head_dim; d += kMost * kLanes) {
    ValueColumns<kRows, kMost, Element>(probabilities, p_stride, values, d, range,
                                        resume, out, out_stride);
  }
  for (; d + kLanes <= values.head_dim; d += kLanes) {
    ValueColumns<kRows, 1, Element>(probabilities, p_stride, values, d, range, resume,
                                    out, out_stride);
  }
}

template <class Element>
HWY_INLINE void Values(const float* probabilities, const KvHead& values, KeyRange range,
                       float* out) {
  const size_t head_dim = values.head_dim;
  WholeValueColumns<1, Element>(probabilities, 0, values, range, false, out, 0);
  if (head_dim % kLanes == 0) return;
  if (head_dim >= kLanes) {
    // The last vector once more, shifted to end at head_dim: the overlap gets the same
    // bits again.
    ValueColumns<1, 1, Element>(probabilities, 0, values, head_dim - kLanes, range,
                                false, out, 0);
  } else {
    NaiveAttentionValues(probabilities, values, range, out);
  }
}

// What both see in one go; what only one sees, before and after that.
template <class Element>
HWY_INLINE void ValuesOfTwo(const float* probabilities, size_t p_stride,
                            const KvHead& values, const KeyRange (&ranges)[2],
                            float* out, size_t out_stride) {
  const KeyRange both = {std::max(ranges[0].begin, ranges[1].begin),
                         std::min(ranges[0].end, ranges[1].end)};
  if (both.begin >= both.end || values.head_dim % kLanes != 0) {
    for (size_t r = 0; r < 2; ++r) {
      Values<Element>(probabilities + r * p_stride, values, ranges[r],
                      out + r * out_stride);
    }
    return;
  }
  for (size_t r = 0; r < 2; ++r) {
    std::fill_n(out + r * out_stride, values.head_dim, 0.0f);
  }
  const auto alone = [&](size_t r, size_t begin, size_t end) {
    WholeValueColumns<1, Element>(probabilities + r * p_stride, 0, values, {begin, end},
                                  true, out + r * out_stride, 0);
  };
  for (size_t r = 0; r < 2; ++r) alone(r, ranges[r].begin, both.begin);
  WholeValueColumns<2, Element>(probabilities, p_stride, values, both, true, out,
                                out_stride);
  for (size_t r = 0; r < 2; ++r) alone(r, both.end, ranges[r].end);
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

void AttentionScoresOfTwo(const float* q, size_t q_stride, const KvHead& keys,
                          const KeyRange (&ranges)[2], float scale, float* scores,
                          size_t scores_stride) {
  const size_t begin = std::min(ranges[0].first_block(), ranges[1].first_block());
  const size_t end = std::max(ranges[0].end_block(), ranges[1].end_block());
  WithElementType(keys.dtype, [&](auto* element) {
    using Element = std::remove_cvref_t<decltype(*element)>;
    for (size_t b = begin; b < end; ++b) {
      BlockScores<2, 1, Element>(q, q_stride, keys, b, scale, scores, scores_stride);
    }
  });
}

void AttentionValues(const float* probabilities, const KvHead& values, KeyRange range,
                     float* out) {
  WithElementType(values.dtype, [&](auto* element) {
    Values<std::remove_cvref_t<decltype(*element)>>(probabilities, values, range, out);
  });
}

void AttentionValuesOfTwo(const float* probabilities, size_t p_stride,
                          const KvHead& values, const KeyRange (&ranges)[2], float* out,
                          size_t out_stride) {
  WithElementType(values.dtype, [&](auto* element) {
    ValuesOfTwo<std::remove_cvref_t<decltype(*element)>>(
        probabilities, p_stride, values, ranges, out, out_stride);
  });
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
