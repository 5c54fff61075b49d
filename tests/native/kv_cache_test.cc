#include "cache/kv_cache.h"

#include <gtest/gtest.h>

#include <numeric>

#include "random_model.h"

namespace kvasm {
namespace {

constexpr KvGeometry kGeometry = {2, 1, 3};

BlockPool Pool(size_t blocks) {
  return std::move(*BlockPool::Create(kGeometry, blocks));
}

// Extends by tokens whose keys and values are all `value`.
void Append(KvCache* cache, size_t count, float value) {
  ASSERT_TRUE(cache->Extend(count).ok());
  const std::vector<float> kv(kGeometry.head_dim, value);
  for (size_t p = cache->tokens() - count; p < cache->tokens(); ++p) {
    for (size_t l = 0; l < kGeometry.n_layer; ++l)
      cache->Store(l, p, kv.data(), kv.data());
  }
}

// What is stored at a position: the value of its values, in the last layer.
float ValueAt(const KvCache& cache, size_t position) {
  std::vector<float> probabilities(position + 1, 0.0f);
  probabilities[position] = 1;
  float out[kGeometry.head_dim];
  AttentionValues(probabilities.data(), cache.Values(1, 0), {position, position + 1},
                  out);
  return out[0];
}

TEST(KvCacheTest, ExtendIsAllOrNothing) {
  BlockPool pool = Pool(2);
  KvCache cache(&pool, 100);
  EXPECT_TRUE(cache.Extend(17).ok());
  EXPECT_EQ(pool.free_blocks(), 0u);
  EXPECT_EQ(cache.Extend(16).code(), StatusCode::kOutOfMemory);
  EXPECT_EQ(cache.Extend(84).code(), StatusCode::kContextFull);
  EXPECT_EQ(cache.tokens(), 17u);
  EXPECT_TRUE(cache.Extend(15).ok());
}

TEST(KvCacheTest, TruncateReturnsExactlyTheBlocksThatHoldNothing) {
  BlockPool pool = Pool(8);
  KvCache cache(&pool, 128);
  ASSERT_TRUE(cache.Extend(100).ok());
  EXPECT_EQ(pool.free_blocks(), 1u);
  ASSERT_TRUE(cache.Truncate(17).ok());
  EXPECT_EQ(pool.free_blocks(), 6u);
  ASSERT_TRUE(cache.Truncate(16).ok());
  EXPECT_EQ(pool.free_blocks(), 7u);
  cache.Clear();
  EXPECT_EQ(pool.free_blocks(), 8u);
}

TEST(KvCacheTest, GivesItsBlocksBackWhenItGoes) {
  BlockPool pool = Pool(3);
  {
    KvCache cache(&pool, 48);
    ASSERT_TRUE(cache.Extend(40).ok());
    EXPECT_EQ(pool.free_blocks(), 0u);
  }
  EXPECT_EQ(pool.free_blocks(), 3u);
}

TEST(KvCacheTest, AForkSharesEveryBlockAndCopiesOnlyTheOneItWrites) {
  BlockPool pool = Pool(8);
  KvCache cache(&pool, 128);
  Append(&cache, 40, 1);
  KvCache fork(&pool, 128);
  fork.ForkFrom(cache);
  EXPECT_EQ(pool.free_blocks(), 5u);
  EXPECT_EQ(pool.copies(), 0u);
  Append(&fork, 1, 2);
  EXPECT_EQ(pool.copies(), 1u);
  EXPECT_EQ(pool.free_blocks(), 4u);
  EXPECT_EQ(fork.block(0), cache.block(0));
  EXPECT_EQ(fork.block(1), cache.block(1));
  EXPECT_NE(fork.block(2), cache.block(2));
  // The copy left the original to its only owner: no second copy.
  Append(&cache, 1, 3);
  EXPECT_EQ(pool.copies(), 1u);
  EXPECT_EQ(ValueAt(fork, 39), 1);
  EXPECT_EQ(ValueAt(fork, 40), 2);
  EXPECT_EQ(ValueAt(cache, 40), 3);
}

TEST(KvCacheTest, AForkAtABlocksEndCopiesNothing) {
  BlockPool pool = Pool(8);
  KvCache cache(&pool, 128);
  Append(&cache, 32, 1);
  KvCache fork(&pool, 128);
  fork.ForkFrom(cache);
  Append(&fork, 1, 2);
  Append(&cache, 1, 3);
  EXPECT_EQ(pool.copies(), 0u);
}

TEST(KvCacheTest, AFullBlockThatIsSharedIsNotWrittenAfterARollBack) {
  BlockPool pool = Pool(8);
  KvCache cache(&pool, 128);
  Append(&cache, 32, 1);
  KvCache fork(&pool, 128);
  fork.ForkFrom(cache);
  ASSERT_TRUE(fork.Truncate(20).ok());
  Append(&fork, 4, 2);
  EXPECT_EQ(pool.copies(), 1u);
  EXPECT_EQ(ValueAt(cache, 20), 1);
  EXPECT_EQ(ValueAt(fork, 19), 1);
  EXPECT_EQ(ValueAt(fork, 20), 2);
}

TEST(KvCacheTest, ACopyThatDoesNotFitChangesNothing) {
  BlockPool pool = Pool(2);
  KvCache cache(&pool, 128);
  Append(&cache, 20, 1);
  KvCache fork(&pool, 128);
  fork.ForkFrom(cache);
  EXPECT_EQ(fork.Extend(1).code(), StatusCode::kOutOfMemory);
  EXPECT_EQ(fork.tokens(), 20u);
  cache.Clear();
  Append(&fork, 1, 2);
  EXPECT_EQ(ValueAt(fork, 19), 1);
}

// Forks, extensions and roll-backs at random, against a plain list of values for each
// cache. Blocks must neither leak nor be written under another's feet.
TEST(KvCacheTest, RandomForksAndRollBacksKeepEveryCacheToItself) {
  TestRandom random(50);
  for (int round = 0; round < 300; ++round) {
    const size_t blocks = Uniform(random, 3, 20);
    BlockPool pool = Pool(blocks);
    std::vector<std::unique_ptr<KvCache>> caches;
    std::vector<std::vector<float>> values;
    float next = 1;
    for (int step = 0; step < 60; ++step) {
      const size_t c = caches.empty() ? 0 : Uniform(random, 0, caches.size() - 1);
      switch (caches.empty() ? 0 : Uniform(random, 0, 5)) {
        case 0:
          caches.push_back(std::make_unique<KvCache>(&pool, 100));
          values.emplace_back();
          break;
        case 1:
          caches.push_back(std::make_unique<KvCache>(&pool, 100));
          caches.back()->ForkFrom(*caches[c]);
          values.push_back(values[c]);
          break;
        case 2: {
          const size_t size = Uniform(random, 0, values[c].size());
          ASSERT_TRUE(caches[c]->Truncate(size).ok());
          values[c].resize(size);
          break;
        }
        case 3:
          caches.erase(caches.begin() + static_cast<std::ptrdiff_t>(c));
          values.erase(values.begin() + static_cast<std::ptrdiff_t>(c));
          break;
        default: {
          const size_t count = Uniform(random, 1, 20);
          const bool fits = caches[c]->BlocksNeeded(count) <= pool.free_blocks() &&
                            values[c].size() + count <= 100;
          if (fits) {
            Append(caches[c].get(), count, next);
            values[c].resize(values[c].size() + count, next);
            next += 1;
          } else {
            ASSERT_FALSE(caches[c]->Extend(count).ok());
          }
        }
      }
      std::vector<size_t> refs(blocks, 0);
      for (size_t i = 0; i < caches.size(); ++i) {
        ASSERT_EQ(caches[i]->tokens(), values[i].size());
        for (size_t p = 0; p < values[i].size(); ++p) {
          ASSERT_EQ(ValueAt(*caches[i], p), values[i][p]) << "round " << round;
        }
        for (size_t b = 0; b < caches[i]->table_size(); ++b) {
          ++refs[static_cast<size_t>(caches[i]->block(b))];
        }
      }
      size_t in_use = 0;
      for (size_t b = 0; b < blocks; ++b) {
        ASSERT_EQ(pool.refs(static_cast<BlockId>(b)), refs[b]);
        in_use += refs[b] > 0;
      }
      ASSERT_EQ(pool.free_blocks(), blocks - in_use);
    }
  }
}

TEST(BlockPoolTest, RefusesWhatMemoryCannotHold) {
  const StatusOr<BlockPool> pool =
      BlockPool::Create({1 << 20, 1 << 10, 1 << 10}, SIZE_MAX / 2);
  ASSERT_FALSE(pool.ok());
  EXPECT_EQ(pool.status().code(), StatusCode::kOutOfMemory);
}

}  // namespace
}  // namespace kvasm
