// The one invariant: the logits for a token are the same bits, however you got there.

#include <gtest/gtest.h>

#include <cstring>
#include <numeric>

#include "base/native_threads.h"
#include "engine/sequence.h"
#include "random_model.h"
#include "reference.h"

namespace kvasm {
namespace {

TEST(InvariantTest, AnyChunkingGivesTheBitsOfOnePassB34B35) {
  TestRandom random(20);
  for (int round = 0; round < 200; ++round) {
    ReferenceModel m(random);
    const std::vector<int32_t> ids = RandomIds(
        random, Uniform(random, 1, m.config().n_positions), m.config().vocab_size);
    const auto expected = UncachedLogits(m.weights(), ids);
    Gpt2 model = std::move(*Gpt2::Create(&m.weights(), ids.size(), ids.size()));
    BlockPool pool = std::move(
        *BlockPool::Create(Gpt2::GeometryOf(m.config()), ids.size() / 16 + 1));
    KvCache cache(&pool, ids.size());
    std::string chunks;
    for (size_t at = 0; at < ids.size();) {
      const size_t count = std::min(Uniform(random, 1, 20), ids.size() - at);
      chunks += " " + std::to_string(count);
      const auto logits = ForwardLogits(&model, &cache, ids, at, count);
      for (size_t i = 0; i < count; ++i) {
        ASSERT_TRUE(SameBits(logits[i].data(), expected[at + i]))
            << "round " << round << ", position " << at + i << ", chunks" << chunks;
      }
      at += count;
    }
  }
}

TEST(InvariantTest, ABatchOfSequencesGivesEachTheBitsItHasAlone) {
  TestRandom random(21);
  for (int round = 0; round < 100; ++round) {
    ReferenceModel m(random);
    const size_t n = Uniform(random, 2, 4);
    const size_t positions = m.config().n_positions;
    BlockPool pool = std::move(
        *BlockPool::Create(Gpt2::GeometryOf(m.config()), n * (positions / 16 + 1)));
    Gpt2 model = std::move(*Gpt2::Create(&m.weights(), n * positions, n * positions));
    std::vector<std::vector<int32_t>> ids;
    std::vector<std::vector<std::vector<float>>> expected;
    std::vector<std::unique_ptr<KvCache>> caches;
    for (size_t s = 0; s < n; ++s) {
      ids.push_back(
          RandomIds(random, Uniform(random, 1, positions), m.config().vocab_size));
      expected.push_back(UncachedLogits(m.weights(), ids[s]));
      caches.push_back(std::make_unique<KvCache>(&pool, positions));
    }
    // Each pass takes some tokens of some sequences, so that their blocks interleave in
    // the pool.
    std::vector<size_t> done(n, 0);
    for (;;) {
      std::vector<BatchRow> rows;
      std::vector<size_t> all;
      for (size_t s = 0; s < n; ++s) {
        const size_t count = std::min(Uniform(random, 0, 9), ids[s].size() - done[s]);
        ASSERT_TRUE(caches[s]->Extend(count).ok());
        for (size_t i = 0; i < count; ++i) {
          all.push_back(rows.size());
          rows.push_back({ids[s][done[s] + i], done[s] + i, caches[s].get()});
        }
      }
      if (!rows.empty()) model.Forward(rows, all);
      for (size_t r = 0; r < rows.size(); ++r) {
        size_t s = 0;
        while (caches[s].get() != rows[r].cache) ++s;
        ASSERT_TRUE(SameBits(model.logits(r), expected[s][rows[r].position]));
        ++done[s];
      }
      bool finished = true;
      for (size_t s = 0; s < n; ++s) finished &= done[s] == ids[s].size();
      if (finished) break;
    }
  }
}

class ThreadedInvariantTest : public testing::TestWithParam<size_t> {};

TEST_P(ThreadedInvariantTest, AnyChunkingGivesTheBitsOfOnePassByOneThread) {
  NativeThreads threads(GetParam());
  TestRandom random(24);
  for (int round = 0; round < 20; ++round) {
    Gpt2Config config = RandomConfig(random);
    // Enough outputs for threads to share.
    config.n_inner = Uniform(random, 100, 600);
    config.vocab_size = Uniform(random, 200, 1500);
    ReferenceModel m(config, random);
    const std::vector<int32_t> ids =
        RandomIds(random, Uniform(random, 1, config.n_positions), config.vocab_size);
    const auto expected = UncachedLogits(m.weights(), ids);
    Gpt2 model =
        std::move(*Gpt2::Create(&m.weights(), ids.size(), ids.size(), threads.pool()));
    BlockPool pool =
        std::move(*BlockPool::Create(Gpt2::GeometryOf(config), ids.size() / 16 + 1));
    KvCache cache(&pool, ids.size());
    for (size_t at = 0; at < ids.size();) {
      const size_t count = std::min(Uniform(random, 1, 12), ids.size() - at);
      const auto logits = ForwardLogits(&model, &cache, ids, at, count);
      for (size_t i = 0; i < count; ++i) {
        ASSERT_TRUE(SameBits(logits[i].data(), expected[at + i]))
            << "round " << round << ", position " << at + i;
      }
      at += count;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Threads, ThreadedInvariantTest, testing::Values(1, 2, 3, 8));

TEST(InvariantTest, LaterTokensNeverReachEarlierRowsB37) {
  TestRandom random(22);
  Gpt2Config config = RandomConfig(random);
  config.n_positions = 80;
  for (const size_t cached : {63u, 64u, 65u}) {
    ReferenceModel m(config, random);
    std::vector<int32_t> ids = RandomIds(random, cached + 5, config.vocab_size);
    const auto before = UncachedLogits(m.weights(), ids);
    for (size_t i = cached + 1; i < ids.size(); ++i) {
      ids[i] = (ids[i] + 1) % static_cast<int32_t>(config.vocab_size);
    }
    const auto after = UncachedLogits(m.weights(), ids);
    for (size_t i = 0; i <= cached; ++i) EXPECT_EQ(before[i], after[i]);
    EXPECT_NE(before.back(), after.back());
  }
}

// A whole generation: the logits of each drawn token, for one strategy and chunk size.
std::vector<std::vector<float>> Generate(Engine* engine,
                                         const std::vector<int32_t>& prompt,
                                         CacheStrategy cache,
                                         std::vector<int32_t>* ids) {
  std::vector<std::vector<float>> logits;
  std::unique_ptr<Sequence> sequence = std::move(*engine->StartSequence(
      prompt, {.cache = cache, .sampler = {.temperature = 1.0f, .seed = 4}}));
  while (sequence->remaining() > 0) {
    NextToken(sequence.get());
    logits.emplace_back(sequence->logits(),
                        sequence->logits() + engine->config().vocab_size);
  }
  ids->assign(sequence->ids().begin(), sequence->ids().end());
  return logits;
}

TEST(InvariantTest, EveryStrategyAndChunkSizeGivesTheBitsOfOneUncachedPassB32B33) {
  TestRandom random(23);
  for (int round = 0; round < 60; ++round) {
    const Gpt2Config config = RandomConfig(random);
    const TestTensors tensors = RandomTensors(config, random);
    const std::vector<uint8_t> file = ToSafetensors(tensors);
    const WeightDtype dtype = RandomDtype(random);
    ReferenceModel m(config, file, dtype);
    const std::vector<int32_t> prompt =
        RandomIds(random, Uniform(random, 1, config.n_positions), config.vocab_size);
    std::vector<int32_t> reference;
    for (const CacheStrategy cache :
         {CacheStrategy::kBlock, CacheStrategy::kConcat, CacheStrategy::kNone}) {
      std::unique_ptr<Engine> engine = std::move(
          *LoadEngine(config, file, {.prefill_chunk = Uniform(random, 1, 40)}, dtype));
      std::vector<int32_t> ids;
      const auto logits = Generate(engine.get(), prompt, cache, &ids);
      ASSERT_EQ(ids.size(), config.n_positions + 1);
      if (reference.empty()) {
        reference = ids;
        reference.pop_back();  // The last one drawn has no position.
      }
      const auto expected = UncachedLogits(m.weights(), reference);
      for (size_t i = 0; i < logits.size(); ++i) {
        ASSERT_TRUE(SameBits(logits[i].data(), expected[prompt.size() - 1 + i]))
            << "round " << round << ", strategy " << static_cast<int>(cache)
            << ", token " << i;
      }
    }
  }
}

}  // namespace
}  // namespace kvasm
