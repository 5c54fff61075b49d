#include "kernels/attention.h"

#include <gtest/gtest.h>

#include <cstring>
#include <limits>

#include "base/aligned_buffer.h"
#include "cache/kv_cache.h"
#include "random_model.h"

namespace kvasm {
namespace {

// A head's keys and values over blocks that hold more than the range, NaN where nothing
// was stored.
class AttentionTest : public testing::TestWithParam<size_t> {
 protected:
  void Fill(size_t tokens) {
    const size_t blocks = (tokens + kBlockTokens - 1) / kBlockTokens;
    const size_t block_size = 2 * head_dim_ * kBlockTokens;
    memory_ = std::move(*AlignedBuffer<float>::Create(blocks * block_size, ""));
    std::fill(memory_.data(), memory_.data() + memory_.size(),
              std::numeric_limits<float>::quiet_NaN());
    for (size_t b = 0; b < blocks; ++b)
      blocks_.push_back(memory_.data() + b * block_size);
    for (size_t j = 0; j < tokens; ++j) {
      const std::vector<float> k = RandomFloats(random_, head_dim_);
      const std::vector<float> v = RandomFloats(random_, head_dim_);
      float* block = memory_.data() + j / kBlockTokens * block_size;
      const size_t slot = j % kBlockTokens;
      for (size_t d = 0; d < head_dim_; ++d) {
        block[d * kBlockTokens + slot] = k[d];
        block[value_offset() + slot * head_dim_ + d] = v[d];
      }
    }
  }

  size_t value_offset() const { return head_dim_ * kBlockTokens; }

  TestRandom random_{7};
  size_t head_dim_ = GetParam();
  AlignedBuffer<float> memory_;
  std::vector<const float*> blocks_;
};

TEST_P(AttentionTest, ScoresAndValuesAgreeWithTheirTwinsToTheBitForAnyRange) {
  constexpr size_t kTokens = 53;
  Fill(kTokens);
  const std::vector<float> q = RandomFloats(random_, head_dim_);
  for (size_t begin = 0; begin < kTokens; begin += 5) {
    for (size_t end = begin + 1; end <= kTokens; ++end) {
      const KeyRange range = {begin, end};
      AlignedBuffer<float> scores = std::move(*AlignedBuffer<float>::Create(64, ""));
      std::vector<float> naive(64);
      AttentionScores(q.data(), head_dim_, blocks_.data(), 0, range, 0.25f,
                      scores.data());
      NaiveAttentionScores(q.data(), head_dim_, blocks_.data(), 0, range, 0.25f,
                           naive.data());
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
      AttentionValues(scores.data(), head_dim_, blocks_.data(), value_offset(), range,
                      out.data());
      NaiveAttentionValues(scores.data(), head_dim_, blocks_.data(), value_offset(),
                           range, naive_out.data());
      ASSERT_EQ(0,
                std::memcmp(out.data(), naive_out.data(), head_dim_ * sizeof(float)));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(HeadDims, AttentionTest,
                         testing::Values(1, 3, 4, 7, 8, 11, 16, 31, 33, 64, 80, 128));

TEST(KvCacheTest, ExtendIsAllOrNothing) {
  const KvGeometry geometry = {1, 1, 4};
  BlockPool pool = std::move(*BlockPool::Create(geometry, 2));
  KvCache cache(&pool, 100);
  EXPECT_TRUE(cache.Extend(17).ok());
  EXPECT_EQ(pool.free_blocks(), 0u);
  EXPECT_EQ(cache.Extend(16).code(), StatusCode::kOutOfMemory);
  EXPECT_EQ(cache.Extend(84).code(), StatusCode::kContextFull);
  EXPECT_EQ(cache.tokens(), 17u);
  EXPECT_TRUE(cache.Extend(15).ok());
}

TEST(KvCacheTest, TruncateReturnsExactlyTheBlocksThatHoldNothing) {
  const KvGeometry geometry = {2, 1, 4};
  BlockPool pool = std::move(*BlockPool::Create(geometry, 8));
  KvCache cache(&pool, 128);
  ASSERT_TRUE(cache.Extend(100).ok());
  EXPECT_EQ(pool.free_blocks(), 1u);
  cache.Truncate(17);
  EXPECT_EQ(pool.free_blocks(), 6u);
  cache.Truncate(16);
  EXPECT_EQ(pool.free_blocks(), 7u);
  cache.Clear();
  EXPECT_EQ(pool.free_blocks(), 8u);
}

TEST(KvCacheTest, GivesItsBlocksBackWhenItGoes) {
  BlockPool pool = std::move(*BlockPool::Create({1, 1, 4}, 3));
  {
    KvCache cache(&pool, 48);
    ASSERT_TRUE(cache.Extend(40).ok());
    EXPECT_EQ(pool.free_blocks(), 0u);
  }
  EXPECT_EQ(pool.free_blocks(), 3u);
}

TEST(BlockPoolTest, ReservesWhatTheFormulaSays) {
  const KvGeometry geometry = {12, 12, 64};
  EXPECT_EQ(geometry.BytesPerToken(), 2u * 12 * 12 * 64 * 4);
  BlockPool pool = std::move(*BlockPool::Create(geometry, 4));
  EXPECT_EQ(pool.reserved_bytes(), 4u * 16 * geometry.BytesPerToken());
}

TEST(BlockPoolTest, RefusesWhatMemoryCannotHold) {
  const StatusOr<BlockPool> pool =
      BlockPool::Create({1 << 20, 1 << 10, 1 << 10}, SIZE_MAX / 2);
  ASSERT_FALSE(pool.ok());
  EXPECT_EQ(pool.status().code(), StatusCode::kOutOfMemory);
}

}  // namespace
}  // namespace kvasm
