#include "kernels/attention.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <tuple>

#include "base/aligned_buffer.h"
#include "cache/block_pool.h"
#include "kernels/softmax.h"
#include "random_model.h"

namespace kvasm {
namespace {

using Shape = std::tuple<KvDtype, size_t>;

// A head's keys and values over some blocks; where nothing was stored, every byte is
// 0xFF (NaN).
class AttentionTest : public testing::TestWithParam<Shape> {
 protected:
  void Fill(size_t tokens) {
    const size_t head_bytes = KvHeadBytes(dtype_, head_dim_);
    memory_ = std::move(
        *AlignedBuffer<uint8_t>::Create(BlocksFor(tokens) * 2 * head_bytes, ""));
    std::fill(memory_.data(), memory_.data() + memory_.size(), uint8_t{0xFF});
    for (size_t b = 0; b < BlocksFor(tokens); ++b) {
      blocks_.push_back(memory_.data() + b * 2 * head_bytes);
    }
    for (size_t j = 0; j < tokens; ++j) {
      uint8_t* block = memory_.data() + j / kBlockTokens * 2 * head_bytes;
      const std::vector<float> k = RandomFloats(random_, head_dim_);
      const std::vector<float> v = RandomFloats(random_, head_dim_);
      StoreKey(dtype_, k.data(), head_dim_, j % kBlockTokens, block);
      StoreValue(dtype_, v.data(), head_dim_, j % kBlockTokens, block + head_bytes);
    }
  }

  KvHead keys() const { return {dtype_, head_dim_, blocks_.data(), 0}; }
  KvHead values() const {
    return {dtype_, head_dim_, blocks_.data(), KvHeadBytes(dtype_, head_dim_)};
  }

  TestRandom random_{7};
  KvDtype dtype_ = std::get<0>(GetParam());
  size_t head_dim_ = std::get<1>(GetParam());
  AlignedBuffer<uint8_t> memory_;
  std::vector<const uint8_t*> blocks_;
};

TEST_P(AttentionTest, ScoresAndValuesAgreeWithTheirTwinsToTheBitForAnyRange) {
  constexpr size_t kTokens = 53;
  Fill(kTokens);
  const std::vector<float> q = RandomFloats(random_, head_dim_);
  for (size_t begin = 0; begin < kTokens; begin += 5) {
    for (size_t end = begin + 1; end <= kTokens; end += 2) {
      const KeyRange range = {begin, end};
      AlignedBuffer<float> scores = std::move(*AlignedBuffer<float>::Create(64, ""));
      std::vector<float> naive(64);
      AttentionScores(q.data(), keys(), range, 0.25f, scores.data());
      NaiveAttentionScores(q.data(), keys(), range, 0.25f, naive.data());
      ASSERT_EQ(0, std::memcmp(scores.data() + begin, naive.data() + begin,
                               (end - begin) * sizeof(float)));
      NaiveSoftmax(range, naive.data());
      Softmax(range, scores.data());
      for (size_t j = range.first_block() * kBlockTokens;
           j < range.end_block() * kBlockTokens; ++j) {
        if (j < begin || j >= end) {
          ASSERT_EQ(scores[j], 0.0f);
        } else {
          // Some ulps of the exponential, of the sum and of the inverse.
          ASSERT_NEAR(scores[j], naive[j], 1e-6f * naive[j] + 1e-12f);
        }
      }
      std::vector<float> out(head_dim_), naive_out(head_dim_);
      AttentionValues(scores.data(), values(), range, out.data());
      NaiveAttentionValues(scores.data(), values(), range, naive_out.data());
      ASSERT_EQ(0,
                std::memcmp(out.data(), naive_out.data(), head_dim_ * sizeof(float)));
    }
  }
}

TEST_P(AttentionTest, TwoQueriesTogetherHaveTheBitsThatEachHasAlone) {
  constexpr size_t kTokens = 53;
  constexpr size_t kStride = 64;
  Fill(kTokens);
  const std::vector<float> q = RandomFloats(random_, 2 * head_dim_);
  std::uniform_int_distribution<size_t> begins(0, kTokens - 1);
  for (int turn = 0; turn < 200; ++turn) {
    KeyRange ranges[2];
    for (KeyRange& range : ranges) {
      range.begin = begins(random_);
      range.end =
          std::uniform_int_distribution<size_t>(range.begin + 1, kTokens)(random_);
    }
    // As in a prompt, half of the time: the second sees a token more, or has dropped
    // one.
    if (turn % 2 == 0) ranges[1] = {ranges[0].begin, ranges[0].end};
    if (turn % 4 == 0) ranges[0].end = std::max(ranges[0].begin + 1, ranges[0].end - 1);
    AlignedBuffer<float> two =
        std::move(*AlignedBuffer<float>::Create(2 * kStride, ""));
    AlignedBuffer<float> one = std::move(*AlignedBuffer<float>::Create(kStride, ""));
    std::vector<float> out_of_two(2 * head_dim_), out(head_dim_);
    AttentionScoresOfTwo(q.data(), head_dim_, keys(), ranges, 0.25f, two.data(),
                         kStride);
    for (size_t r = 0; r < 2; ++r) Softmax(ranges[r], two.data() + r * kStride);
    AttentionValuesOfTwo(two.data(), kStride, values(), ranges, out_of_two.data(),
                         head_dim_);
    for (size_t r = 0; r < 2; ++r) {
      const KeyRange range = ranges[r];
      AttentionScores(q.data() + r * head_dim_, keys(), range, 0.25f, one.data());
      Softmax(range, one.data());
      ASSERT_EQ(0, std::memcmp(two.data() + r * kStride + range.begin,
                               one.data() + range.begin,
                               (range.end - range.begin) * sizeof(float)));
      AttentionValues(one.data(), values(), range, out.data());
      ASSERT_EQ(0, std::memcmp(out_of_two.data() + r * head_dim_, out.data(),
                               head_dim_ * sizeof(float)));
    }
  }
}

TEST_P(AttentionTest, WhatIsStoredComesBackAsNearAsItsDtypeAllows) {
  memory_ =
      std::move(*AlignedBuffer<uint8_t>::Create(KvHeadBytes(dtype_, head_dim_), ""));
  blocks_ = {memory_.data()};
  const KvHead head = {dtype_, head_dim_, blocks_.data(), 0};
  for (size_t slot = 0; slot < kBlockTokens; ++slot) {
    const std::vector<float> x = RandomFloats(random_, head_dim_);
    float max = 0;
    for (const float v : x) max = std::max(max, std::fabs(v));
    // Half a unit in the last place of binary16, half a step of int8.
    const float tolerance = dtype_ == KvDtype::kF32   ? 0
                            : dtype_ == KvDtype::kF16 ? max * 0x1p-11f
                                                      : max / 127 * 0.501f;
    const KeyRange range = {slot, slot + 1};
    StoreValue(dtype_, x.data(), head_dim_, slot, memory_.data());
    std::vector<float> probabilities(kBlockTokens, 1.0f);
    std::vector<float> value(head_dim_);
    AttentionValues(probabilities.data(), head, range, value.data());
    for (size_t d = 0; d < head_dim_; ++d) ASSERT_NEAR(value[d], x[d], tolerance);

    StoreKey(dtype_, x.data(), head_dim_, slot, memory_.data());
    for (size_t d = 0; d < head_dim_; ++d) {
      std::vector<float> unit(head_dim_);
      unit[d] = 1;
      AlignedBuffer<float> scores = std::move(*AlignedBuffer<float>::Create(16, ""));
      AttentionScores(unit.data(), head, range, 1, scores.data());
      ASSERT_NEAR(scores[slot], x[d], tolerance);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, AttentionTest,
    testing::Combine(testing::Values(KvDtype::kF32, KvDtype::kF16, KvDtype::kQ8),
                     testing::Values(1, 3, 4, 7, 8, 11, 16, 31, 33, 64, 80, 128)));

TEST(KvLayoutTest, Q8KeepsWhatIsNotFinite) {
  std::vector<uint8_t> area(KvHeadBytes(KvDtype::kQ8, 4));
  const float x[4] = {1, NAN, 2, 3};
  StoreValue(KvDtype::kQ8, x, 4, 0, area.data());
  const uint8_t* blocks[1] = {area.data()};
  const float probability = 1;
  float out[4];
  AttentionValues(&probability, {KvDtype::kQ8, 4, blocks, 0}, {0, 1}, out);
  EXPECT_TRUE(std::isnan(out[0]));
}

TEST(KvLayoutTest, TheBytesOfATokenAreWhatTheFormulaSays) {
  const KvGeometry f32 = {12, 12, 64, KvDtype::kF32};
  EXPECT_EQ(f32.BytesPerToken(), 2u * 12 * 12 * 64 * 4);
  EXPECT_EQ((KvGeometry{12, 12, 64, KvDtype::kF16}.BytesPerToken()),
            2u * 12 * 12 * 64 * 2);
  EXPECT_EQ((KvGeometry{12, 12, 64, KvDtype::kQ8}.BytesPerToken()),
            2u * 12 * 12 * (64 + 4));
  EXPECT_EQ((KvGeometry{12, 3, 64, KvDtype::kF32}.BytesPerToken()),
            f32.BytesPerToken() / 4);
  BlockPool pool = std::move(*BlockPool::Create(f32, 4));
  EXPECT_EQ(pool.reserved_bytes(), 4u * 16 * f32.BytesPerToken());
}

}  // namespace
}  // namespace kvasm
