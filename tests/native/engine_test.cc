#include "engine/engine.h"

#include <gtest/gtest.h>

#include "allocation_counter.h"
#include "random_model.h"

namespace kvasm {
namespace {

constexpr CacheStrategy kStrategies[] = {CacheStrategy::kBlock, CacheStrategy::kConcat,
                                         CacheStrategy::kNone};

class EngineTest : public testing::Test {
 protected:
  EngineTest() { engine_ = RandomEngine(config_, random_, {.prefill_chunk = 8}); }

  std::unique_ptr<Sequence> Start(const std::vector<int32_t>& prompt,
                                  const SequenceOptions& options = {}) {
    return std::move(*engine_->StartSequence(prompt, options));
  }

  TestRandom random_{30};
  Gpt2Config config_ = SmallConfig();
  std::unique_ptr<Engine> engine_;
};

TEST_F(EngineTest, ThePositionTableHoldsPromptAndNewMinusOneT1B42) {
  for (const CacheStrategy cache : kStrategies) {
    for (const size_t prompt : {1u, 7u, 8u, 49u, 50u}) {
      auto sequence =
          Start(RandomIds(random_, prompt, config_.vocab_size), {.cache = cache});
      size_t drawn = 0;
      for (; sequence->remaining() > 0; ++drawn) NextToken(sequence.get());
      EXPECT_EQ(prompt + drawn - 1, config_.n_positions);
      EXPECT_EQ(engine_->Step().front().kind, StepEvent::Kind::kFailed);
      EXPECT_EQ(sequence->status().code(), StatusCode::kContextFull);
    }
  }
}

TEST_F(EngineTest, APromptThatDoesNotFitIsRefusedAndHarmsNothingT2) {
  const auto prompt = RandomIds(random_, 51, config_.vocab_size);
  EXPECT_EQ(engine_->StartSequence(prompt, {}).status().code(),
            StatusCode::kContextFull);
  EXPECT_EQ(engine_->Memory().kv_used_bytes, 0u);
  NextToken(Start({1, 2, 3}).get());
}

TEST_F(EngineTest, AnEmptyPromptAndIdsOutOfRangeAreRefusedT9) {
  const auto code = [&](const std::vector<int32_t>& prompt) {
    return engine_->StartSequence(prompt, {}).status().code();
  };
  EXPECT_EQ(code({}), StatusCode::kInvalidArgument);
  EXPECT_EQ(code({-1}), StatusCode::kInvalidArgument);
  EXPECT_EQ(code({61}), StatusCode::kInvalidArgument);
  EXPECT_EQ(code({60}), StatusCode::kOk);
}

TEST_F(EngineTest, OptionsOutOfRangeAreRefused) {
  const auto code = [&](const SamplerOptions& sampler) {
    return engine_->StartSequence(std::vector<int32_t>{1}, {.sampler = sampler})
        .status()
        .code();
  };
  EXPECT_EQ(code({.temperature = -1}), StatusCode::kInvalidArgument);
  EXPECT_EQ(code({.top_p = 0}), StatusCode::kInvalidArgument);
}

TEST_F(EngineTest, TheCacheGrowsByTheFormulaPerToken) {
  const size_t per_token = 2 * 2 * 1 * 12 * 4;
  for (const CacheStrategy cache : kStrategies) {
    auto sequence = Start({1, 2, 3, 4, 5}, {.cache = cache});
    const bool keeps = cache != CacheStrategy::kNone;
    for (size_t tokens = 5; tokens < 30; ++tokens) {
      NextToken(sequence.get());
      const MemoryUse memory = engine_->Memory();
      EXPECT_EQ(memory.kv_bytes_per_token, per_token);
      EXPECT_EQ(memory.kv_tokens, keeps ? tokens : 0);
      EXPECT_EQ(memory.kv_used_bytes, memory.kv_tokens * per_token);
      EXPECT_GE(memory.kv_reserved_bytes, memory.kv_used_bytes);
    }
  }
  // What is not free, only the prefix tree holds.
  EXPECT_EQ(engine_->pool().free_blocks() + engine_->prefix_stats()->blocks,
            engine_->pool().blocks());
}

TEST_F(EngineTest, AShorterContextReservesLessAndEndsEarlier) {
  auto small = RandomEngine(config_, random_, {.context_length = 20});
  EXPECT_LT(small->Memory().kv_reserved_bytes, engine_->Memory().kv_reserved_bytes);
  EXPECT_EQ(small->StartSequence(std::vector<int32_t>(21, 1), {}).status().code(),
            StatusCode::kContextFull);
  auto sequence = std::move(*small->StartSequence(std::vector<int32_t>(20, 1), {}));
  EXPECT_EQ(sequence->remaining(), 1u);
  NextToken(sequence.get());
  EXPECT_EQ(sequence->remaining(), 0u);
}

TEST_F(EngineTest, AContextBeyondThePositionTableIsRefused) {
  const auto engine = LoadEngine(
      config_, ToSafetensors(RandomTensors(config_, random_)), {.context_length = 51});
  EXPECT_EQ(engine.status().code(), StatusCode::kInvalidArgument);
}

TEST_F(EngineTest, GenerationAllocatesNothingPerToken) {
  for (const SamplerOptions& sampler :
       {SamplerOptions{.temperature = 0},
        SamplerOptions{.top_k = 5, .top_p = 0.9f, .min_p = 0.01f},
        SamplerOptions{.penalties = {1.2f, 0.1f, 0.1f, {{3, 1}}}}}) {
    auto sequence =
        Start(RandomIds(random_, 20, config_.vocab_size), {.sampler = sampler});
    const size_t before = AllocationCount();
    while (sequence->remaining() > 0 && !engine_->Step().empty()) continue;
    EXPECT_EQ(AllocationCount(), before);
    EXPECT_EQ(sequence->remaining(), 0u);
  }
  // The counter counts: the textbook's cache does allocate.
  auto sequence = Start({1}, {.cache = CacheStrategy::kConcat});
  const size_t before = AllocationCount();
  NextToken(sequence.get());
  EXPECT_GT(AllocationCount(), before);
}

TEST_F(EngineTest, APreviousRequestDoesNotBleedIntoTheNextB58) {
  for (const CacheStrategy cache : kStrategies) {
    std::vector<int32_t> first;
    for (int i = 0; i < 5; ++i) {
      auto sequence = Start({3, 1, 4}, {.cache = cache, .sampler = {.temperature = 0}});
      while (sequence->remaining() > 0) NextToken(sequence.get());
      const std::vector<int32_t> ids(sequence->ids().begin(), sequence->ids().end());
      if (i == 0) first = ids;
      EXPECT_EQ(ids, first);
      sequence.reset();
      // Something else in between.
      auto other = Start(RandomIds(random_, 40, config_.vocab_size), {.cache = cache});
      NextToken(other.get());
    }
  }
}

TEST_F(EngineTest, DamagedWeightsEndTheSequenceWithATypedErrorAndTheEngineGoesOn) {
  TestTensors tensors = RandomTensors(config_, random_);
  // Token 7 alone is damaged.
  for (size_t i = 0; i < config_.n_embd; ++i) {
    tensors["wte.weight"].elements[7 * config_.n_embd + i] =
        std::numeric_limits<float>::quiet_NaN();
  }
  tensors["lm_head.weight"] = {
      {config_.vocab_size, config_.n_embd},
      RandomFloats(random_, config_.vocab_size * config_.n_embd)};
  auto engine = std::move(*LoadEngine(config_, ToSafetensors(tensors)));
  auto damaged = std::move(*engine->StartSequence(std::vector<int32_t>{7}, {}));
  ASSERT_EQ(engine->Step().size(), 1u);
  EXPECT_EQ(damaged->status().code(), StatusCode::kNonFinite);
  EXPECT_TRUE(engine->Step().empty());
  damaged.reset();
  auto sequence = std::move(*engine->StartSequence(std::vector<int32_t>{1}, {}));
  EXPECT_EQ(engine->Step().front().kind, StepEvent::Kind::kToken);
}

}  // namespace
}  // namespace kvasm
