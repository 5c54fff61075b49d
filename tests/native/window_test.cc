// Windowed attention: a window of W equals a full pass under the band mask j <= i and i
// - j < W, with the absolute positions that GPT-2 learned.

#include <gtest/gtest.h>

#include <cmath>

#include "cache/kv_cache.h"
#include "engine/sequence.h"
#include "random_model.h"
#include "reference.h"

namespace kvasm {
namespace {

// Logits of all positions, computed in random chunks on a cache that slides.
std::vector<Logits> SlidingLogits(const Gpt2Weights& weights,
                                  const std::vector<int32_t>& ids, size_t window,
                                  KvDtype dtype, TestRandom& random) {
  constexpr size_t kMaxChunk = 20;
  const Gpt2Config& config = weights.config;
  Gpt2 model = std::move(*Gpt2::Create(&weights, kMaxChunk, kMaxChunk));
  // No more blocks than window and chunk need: the cache must give back what it leaves
  // behind.
  BlockPool pool = std::move(*BlockPool::Create(
      Gpt2::GeometryOf(config, dtype),
      std::min(BlocksFor(config.n_positions), BlocksFor(window - 1 + kMaxChunk) + 1)));
  KvCache cache(&pool, config.n_positions, window);
  std::vector<Logits> logits;
  while (logits.size() < ids.size()) {
    const size_t at = logits.size();
    const size_t count = std::min(Uniform(random, 1, kMaxChunk), ids.size() - at);
    for (Logits& row : ForwardLogits(&model, &cache, ids, at, count)) {
      logits.push_back(std::move(row));
    }
    cache.Slide();
  }
  return logits;
}

TEST(WindowTest, EqualsABandedPassOverTheWholeSequenceForAnyChunkingT3T4B38B40) {
  TestRandom random(40);
  for (int round = 0; round < 300; ++round) {
    ReferenceModel m(random);
    const size_t n = m.config().n_positions;
    const std::vector<int32_t> ids =
        RandomIds(random, Uniform(random, 1, n), m.config().vocab_size);
    const size_t window = Uniform(random, 1, n);
    const KvDtype dtype = static_cast<KvDtype>(Uniform(random, 0, 2));
    EXPECT_EQ(SlidingLogits(m.weights(), ids, window, dtype, random),
              UncachedLogits(m.weights(), ids, window, dtype))
        << "round " << round << ", window " << window;
  }
}

TEST(WindowTest, TheBandedPassIsThatOfPlainLoops) {
  TestRandom random(41);
  for (int round = 0; round < 40; ++round) {
    const Gpt2Config config = RandomConfig(random);
    const TestTensors tensors = RandomTensors(config, random);
    ReferenceModel m(config, ToSafetensors(tensors));
    const std::vector<int32_t> ids =
        RandomIds(random, config.n_positions, config.vocab_size);
    const size_t window = Uniform(random, 0, config.n_positions);
    const auto expected = NaiveLogits(config, tensors, ids, window);
    const auto actual = UncachedLogits(m.weights(), ids, window);
    for (size_t i = 0; i < ids.size(); ++i) {
      for (size_t v = 0; v < config.vocab_size; ++v) {
        // float32 against float64, as in tests/golden. Layers of one or two columns
        // normalise differences that are nearly 0, which enlarges rounding.
        const float tolerance = config.n_embd < 4 ? 2e-2f : 2e-4f;
        ASSERT_NEAR(actual[i][v], expected[i][v],
                    tolerance * std::max(1.0f, std::fabs(expected[i][v])))
            << "round " << round << ", position " << i;
      }
    }
  }
}

TEST(WindowTest, AWindowOfAllPositionsIsNone) {
  TestRandom random(42);
  ReferenceModel m(random);
  const std::vector<int32_t> ids =
      RandomIds(random, m.config().n_positions, m.config().vocab_size);
  EXPECT_EQ(UncachedLogits(m.weights(), ids, ids.size()),
            UncachedLogits(m.weights(), ids));
}

TEST(WindowTest, MemoryStopsGrowingAtTheWindow) {
  const KvGeometry geometry = {1, 1, 4};
  BlockPool pool = std::move(*BlockPool::Create(geometry, 5));
  KvCache cache(&pool, 1000, 33);
  for (size_t i = 0; i < 1000; ++i) {
    ASSERT_TRUE(cache.Extend(1).ok()) << i;
    cache.Slide();
    // The next query sees 32 tokens before itself: at most 3 blocks, and never a whole
    // one more.
    EXPECT_LT(cache.held_tokens(), 33u + kBlockTokens);
    EXPECT_LE(cache.first_token(), cache.Visible(cache.tokens()).begin);
  }
}

TEST(WindowTest, RollingBackIsRefusedWhereTheWindowHasDroppedWhatIsNeededT6) {
  BlockPool pool = std::move(*BlockPool::Create({1, 1, 4}, 8));
  KvCache cache(&pool, 200, 20);
  ASSERT_TRUE(cache.Extend(100).ok());
  cache.Slide();
  // Positions from 80 on are held, and the query at 99 sees from 80 on.
  EXPECT_EQ(cache.first_token(), 80u);
  EXPECT_TRUE(cache.Truncate(99).ok());
  const Status refused = cache.Truncate(98);
  EXPECT_EQ(refused.code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(cache.tokens(), 99u);
  EXPECT_EQ(cache.first_token(), 80u);
}

}  // namespace
}  // namespace kvasm
