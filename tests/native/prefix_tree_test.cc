#include "cache/prefix_tree.h"

#include <gtest/gtest.h>

#include <numeric>

#include "engine/sequence.h"
#include "random_model.h"
#include "reference.h"

namespace kvasm {
namespace {

std::vector<int32_t> Range(int32_t from, size_t count) {
  std::vector<int32_t> ids(count);
  std::iota(ids.begin(), ids.end(), from);
  return ids;
}

std::vector<int32_t> operator+(std::vector<int32_t> a, const std::vector<int32_t>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

// The tree by itself, on caches whose contents do not matter.
class PrefixTreeTest : public testing::Test {
 protected:
  static constexpr size_t kBlocks = 12;

  std::unique_ptr<KvCache> NewCache(size_t window = 0) {
    return std::make_unique<KvCache>(&pool_, 1000, window);
  }

  // Computes a prompt, as a sequence would, and lets go of it.
  size_t Run(const std::vector<int32_t>& ids, size_t window = 0) {
    auto cache = NewCache(window);
    const size_t reused = tree_.Match(ids, cache.get());
    tree_.CountLookup(reused);
    EXPECT_TRUE(cache->Extend(ids.size() - reused).ok());
    tree_.Insert(ids, *cache, true);
    return reused;
  }

  size_t Reused(const std::vector<int32_t>& ids) {
    auto cache = NewCache();
    return tree_.Match(ids, cache.get());
  }

  BlockPool pool_ = std::move(*BlockPool::Create({1, 1, 2}, kBlocks));
  PrefixTree tree_{&pool_};
};

TEST_F(PrefixTreeTest, TheWholePromptIsReusedButForItsLastTokenT14B45) {
  EXPECT_EQ(Run(Range(0, 40)), 0u);
  EXPECT_EQ(Run(Range(0, 40)), 39u);
  EXPECT_EQ(Run(Range(0, 33)), 32u);
  EXPECT_EQ(Run(Range(0, 1)), 0u);
  EXPECT_EQ(tree_.stats().lookups, 4u);
  EXPECT_EQ(tree_.stats().hits, 2u);
  EXPECT_EQ(tree_.stats().tokens_reused, 71u);
}

TEST_F(PrefixTreeTest, ItsBlocksAreAsFullAsThePromptThatItKnows) {
  Run(Range(0, 40));
  size_t held = 0;
  size_t tokens = 0;
  for (BlockId block = 0; block < static_cast<BlockId>(kBlocks); ++block) {
    held += tree_.Holds(block) ? 1 : 0;
    tokens += tree_.tokens(block);
  }
  EXPECT_EQ(held, 3u);
  EXPECT_EQ(tokens, 40u);
}

TEST_F(PrefixTreeTest, GrowingPromptsReuseAllThatTheyShareT16B57) {
  EXPECT_EQ(Run(Range(0, 14)), 0u);
  EXPECT_EQ(Run(Range(0, 24)), 14u);
  EXPECT_EQ(Run(Range(0, 34)), 24u);
  EXPECT_EQ(Run(Range(0, 33)), 32u);
}

TEST_F(PrefixTreeTest, APrefixMayEndInsideABlock) {
  Run(Range(0, 32));
  EXPECT_EQ(Run(Range(0, 20) + Range(500, 5)), 20u);
  EXPECT_EQ(Run(Range(0, 20) + Range(500, 9)), 25u);
  EXPECT_EQ(Run(Range(0, 5) + Range(600, 9)), 5u);
}

TEST_F(PrefixTreeTest, IdsAreComparedWholeT15B48) {
  Run(std::vector<int32_t>(20, 65));
  EXPECT_EQ(Reused(std::vector<int32_t>(20, 65 + 256)), 0u);
  EXPECT_EQ(Reused(std::vector<int32_t>(20, 65 + 65536)), 0u);
}

TEST_F(PrefixTreeTest, NothingIsReusedAfterAGapB54) {
  Run(Range(0, 48));
  EXPECT_EQ(Reused(Range(1000, 1) + Range(1, 47)), 0u);
  EXPECT_EQ(Reused(Range(0, 16) + Range(1000, 16) + Range(32, 16)), 16u);
}

TEST_F(PrefixTreeTest, EvictsTheLeastRecentlyUsedLeafFirstB55) {
  const auto hot = Range(0, 40);
  Run(hot);
  for (int32_t cold = 1; cold <= 8; ++cold) {
    Run(Range(cold * 1000, 40));
    EXPECT_EQ(Run(hot), 39u) << "after cold prompt " << cold;
  }
  EXPECT_GT(tree_.stats().evictions, 0u);
  EXPECT_EQ(Reused(Range(1000, 40)), 0u);
}

TEST_F(PrefixTreeTest, AFullPoolGoesOnForEverT17B53) {
  for (int32_t p = 0; p < 200; ++p) Run(Range(p * 1000, 50));
  EXPECT_GT(tree_.stats().evictions, 0u);
  EXPECT_LE(tree_.stats().blocks, kBlocks);
  tree_.Clear();
  EXPECT_EQ(pool_.free_blocks(), kBlocks);
}

TEST_F(PrefixTreeTest, ABlockInUseIsNeverEvicted) {
  const auto ids = Range(0, 100);
  Run(ids);
  auto user = NewCache();
  ASSERT_EQ(tree_.Match(ids, user.get()), 99u);
  std::vector<BlockId> held;
  for (size_t b = 0; b < user->table_size(); ++b) held.push_back(user->block(b));
  auto other = NewCache();
  // All that is not held can be had, and no more.
  ASSERT_TRUE(other->Extend((kBlocks - held.size()) * kBlockTokens).ok());
  EXPECT_EQ(other->Extend(1).code(), StatusCode::kOutOfMemory);
  for (size_t b = 0; b < other->table_size(); ++b) {
    EXPECT_EQ(std::find(held.begin(), held.end(), other->block(b)), held.end());
  }
}

TEST_F(PrefixTreeTest, APartMatchGivesWayWhereItsCopyDoesNotFit) {
  auto user = NewCache();
  Run(Range(0, 48));
  ASSERT_TRUE(user->Extend((kBlocks - 3) * kBlockTokens).ok());
  // The third block matches in part; no block is left for its copy, so it is not used,
  // and can be given up for what follows.
  auto cache = NewCache();
  EXPECT_EQ(tree_.Match(Range(0, 40), cache.get()), 32u);
  EXPECT_TRUE(cache->Extend(8).ok());
}

TEST_F(PrefixTreeTest, BlocksThatAWindowLeftBehindDoNotPinThePool) {
  constexpr size_t kWindow = 20;
  auto cache = NewCache(kWindow);
  const auto ids = Range(0, 900);
  for (size_t at = 0; at < ids.size(); at += kBlockTokens) {
    ASSERT_TRUE(cache->Extend(std::min(kBlockTokens, ids.size() - at)).ok()) << at;
    tree_.Insert(std::span(ids).first(cache->tokens()), *cache, false);
    cache->Slide();
  }
}

TEST_F(PrefixTreeTest, AWindowedCacheTakesWholeBlocksAndHoldsOnlyItsWindow) {
  constexpr size_t kWindow = 20;
  Run(Range(0, 100), kWindow);
  auto cache = NewCache(kWindow);
  EXPECT_EQ(tree_.Match(Range(0, 90), cache.get()), 80u);
  EXPECT_EQ(cache->first_token(), 48u);
}

// The tree behind an engine: bits, not only counts.

class PrefixEngineTest : public testing::Test {
 protected:
  PrefixEngineTest() {
    config_ = {.n_layer = 2,
               .n_head = 2,
               .n_kv_head = 1,
               .n_embd = 24,
               .n_inner = 40,
               .n_positions = 120,
               .vocab_size = 61};
    file_ = ToSafetensors(RandomTensors(config_, random_));
    reference_ = std::make_unique<ReferenceModel>(config_, file_);
    engine_ = std::move(*LoadEngine(config_, file_, {.prefill_chunk = 8}));
  }

  // Logits after each of `tokens` greedy draws, checked against an uncached pass;
  // returns the ids.
  std::vector<int32_t> Run(const std::vector<int32_t>& prompt, size_t tokens,
                           size_t* reused = nullptr) {
    auto sequence =
        std::move(*engine_->StartSequence(prompt, {.sampler = {.temperature = 0}}));
    std::vector<Logits> logits;
    for (size_t t = 0; t < tokens; ++t) {
      NextToken(sequence.get());
      logits.emplace_back(sequence->logits(), sequence->logits() + config_.vocab_size);
    }
    if (reused) *reused = sequence->reused();
    const std::vector<int32_t> ids(sequence->ids().begin(), sequence->ids().end());
    const auto expected =
        UncachedLogits(reference_->weights(), {ids.begin(), ids.end() - 1});
    for (size_t t = 0; t < tokens; ++t) {
      EXPECT_EQ(logits[t], expected[prompt.size() - 1 + t]) << "token " << t;
    }
    return ids;
  }

  TestRandom random_{60};
  Gpt2Config config_;
  std::vector<uint8_t> file_;
  std::unique_ptr<ReferenceModel> reference_;
  std::unique_ptr<Engine> engine_;
};

TEST_F(PrefixEngineTest, AHitGivesTheBitsOfAColdRunT11T12T13B45) {
  const auto prompt = RandomIds(random_, 50, config_.vocab_size);
  size_t reused = 1;
  const auto cold = Run(prompt, 10, &reused);
  EXPECT_EQ(reused, 0u);
  EXPECT_EQ(Run(prompt, 10, &reused), cold);
  EXPECT_EQ(reused, 49u);
}

TEST_F(PrefixEngineTest, BranchesOffOnePrefixDoNotChangeItT18B51) {
  const auto p = RandomIds(random_, 37, config_.vocab_size);
  const auto a = p + RandomIds(random_, 20, config_.vocab_size);
  const auto b = p + RandomIds(random_, 20, config_.vocab_size);
  size_t reused = 0;
  for (const auto& prompt : {p, a, b, a, p, b}) Run(prompt, 5, &reused);
  EXPECT_GE(reused, 37u);
}

TEST_F(PrefixEngineTest, TheTokensDrawnAreReusedByTheNextTurn) {
  const auto first = Run(RandomIds(random_, 20, config_.vocab_size), 10);
  size_t reused = 0;
  Run(first + RandomIds(random_, 7, config_.vocab_size), 5, &reused);
  // All of the first turn but the last token drawn, which nothing was computed from.
  EXPECT_EQ(reused, first.size() - 1);
}

TEST_F(PrefixEngineTest, ManyPromptsInASmallPoolAllSucceedB53) {
  engine_ = std::move(*LoadEngine(
      config_, file_,
      {.kv_bytes = 9 * Gpt2::GeometryOf(config_).BlockBytes(), .prefill_chunk = 8}));
  for (int i = 0; i < 20; ++i) Run(RandomIds(random_, 40, config_.vocab_size), 5);
  EXPECT_GT(engine_->prefix_stats()->evictions, 0u);
}

TEST_F(PrefixEngineTest, WithoutThePrefixCacheNothingIsReused) {
  engine_ = std::move(*LoadEngine(config_, file_, {.prefix_cache = false}));
  const auto prompt = RandomIds(random_, 50, config_.vocab_size);
  size_t reused = 1;
  Run(prompt, 3);
  Run(prompt, 3, &reused);
  EXPECT_EQ(reused, 0u);
  EXPECT_EQ(engine_->pool().free_blocks(), engine_->pool().blocks());
}

TEST_F(PrefixEngineTest, ASequenceMayKeepItsPromptToItself) {
  const auto prompt = RandomIds(random_, 50, config_.vocab_size);
  {
    auto secret = std::move(*engine_->StartSequence(prompt, {.reuse_prefix = false}));
    NextToken(secret.get());
  }
  size_t reused = 1;
  Run(prompt, 3, &reused);
  EXPECT_EQ(reused, 0u);
}

}  // namespace
}  // namespace kvasm
