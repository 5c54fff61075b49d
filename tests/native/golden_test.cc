// The forward pass against PyTorch, on every model of tests/golden.

#include "golden.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "engine/sequence.h"
#include "formats/safetensors.h"
#include "model/gpt2_checkpoint.h"

namespace kvasm {
namespace {

class GoldenTest : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    StatusOr<Gpt2Config> config =
        ParseGpt2Config(ReadFile(GoldenPath(GetParam()) + "config.json"));
    ASSERT_TRUE(config.ok()) << config.status().message();
    config_ = config.value();
    file_ = ReadBytes(GoldenPath(GetParam()) + "model.safetensors");
    prompts_ = ReadGoldenPrompts(GetParam());
    ASSERT_FALSE(prompts_.empty());
  }

  Gpt2Config config_;
  std::vector<uint8_t> file_;
  std::vector<GoldenPrompt> prompts_;
};

// Heads tied and not; square c_proj, whose shape tells nothing of its order.
TEST_P(GoldenTest, LogitsAreThoseOfPyTorchAtEveryPositionB76B78) {
  Gpt2CheckpointSink sink(config_);
  ASSERT_TRUE(ReadSafetensors(file_, 4096, &sink).ok());
  const size_t n = config_.n_positions;
  Gpt2 model = std::move(*Gpt2::Create(&sink.weights(), n, n));
  BlockPool pool = std::move(*BlockPool::Create(Gpt2::GeometryOf(config_), n / 16 + 1));
  KvCache cache(&pool, n);
  for (const GoldenPrompt& prompt : prompts_) {
    cache.Clear();
    ASSERT_TRUE(cache.Extend(prompt.ids.size()).ok());
    std::vector<BatchRow> rows;
    for (size_t i = 0; i < prompt.ids.size(); ++i)
      rows.push_back({prompt.ids[i], i, &cache});
    std::vector<size_t> all(rows.size());
    std::iota(all.begin(), all.end(), size_t{0});
    model.Forward(rows, all);
    for (size_t i = 0; i < prompt.ids.size(); ++i) {
      for (size_t v = 0; v < config_.vocab_size; ++v) {
        const float expected = prompt.logits[i * config_.vocab_size + v];
        // Rounding in float32 against float64; the README of tests/golden says why this
        // much.
        ASSERT_NEAR(model.logits(i)[v], expected,
                    1e-4f * std::max(std::fabs(expected), 1.0f))
            << "position " << i << ", id " << v;
      }
    }
  }
}

TEST_P(GoldenTest, GreedyIdsAreThoseOfPyTorchWithEveryCache) {
  std::unique_ptr<Engine> engine = std::move(*LoadEngine(config_, file_));
  for (const CacheStrategy cache :
       {CacheStrategy::kBlock, CacheStrategy::kConcat, CacheStrategy::kNone}) {
    for (const GoldenPrompt& prompt : prompts_) {
      std::unique_ptr<Sequence> sequence = std::move(*engine->StartSequence(
          prompt.ids, {.cache = cache, .sampler = {.temperature = 0}}));
      for (const int32_t expected : prompt.greedy) {
        ASSERT_EQ(NextToken(sequence.get()), expected);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Models, GoldenTest,
                         testing::Values("tied-f32", "untied-bias", "gqa", "mqa", "f16",
                                         "bf16", "layout-plain", "layout-transformer",
                                         "layout-published", "layout-odd-header",
                                         "layout-shuffled-header", "null-inner",
                                         "head-dim-64", "smallest", "epsilon-1e-3"));

TEST(GoldenLayoutTest, NamesBuffersAndOrderOfTheFileChangeNoBitB75) {
  std::vector<float> reference;
  for (const char* name : {"layout-plain", "layout-transformer", "layout-published",
                           "layout-odd-header", "layout-shuffled-header"}) {
    const Gpt2Config config =
        ParseGpt2Config(ReadFile(GoldenPath(name) + "config.json")).value();
    std::unique_ptr<Engine> engine = std::move(
        *LoadEngine(config, ReadBytes(GoldenPath(name) + "model.safetensors")));
    const std::vector<int32_t> prompt = ReadGoldenPrompts(name).back().ids;
    std::unique_ptr<Sequence> sequence = std::move(*engine->StartSequence(prompt, {}));
    NextToken(sequence.get());
    const std::vector<float> logits(sequence->logits(),
                                    sequence->logits() + config.vocab_size);
    if (reference.empty()) reference = logits;
    EXPECT_EQ(logits, reference) << name;
  }
}

}  // namespace
}  // namespace kvasm
