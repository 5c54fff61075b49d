// What heads look at, as the pass that shows it says.

#include "model/attention_weights.h"

#include <gtest/gtest.h>

#include <numeric>

#include "random_model.h"
#include "reference.h"

namespace kvasm {
namespace {

struct Case {
  Gpt2Config config;
  TestTensors tensors;
  std::vector<int32_t> ids;
  AttentionQuery query;
};

Case RandomCase(TestRandom& random) {
  const Gpt2Config config = RandomConfig(random);
  const size_t n = config.n_positions;
  return {.config = config,
          .tensors = RandomTensors(config, random),
          .ids = RandomIds(random, Uniform(random, 1, n), config.vocab_size),
          .query = {.layer = Uniform(random, 0, config.n_layer - 1),
                    .window = Uniform(random, 0, n)}};
}

AlignedBuffer<float> Weights(ReferenceModel& model, const Case& c,
                             const AttentionQuery& query) {
  StatusOr<AlignedBuffer<float>> weights =
      AttentionWeights(model.weights(), c.ids, query);
  EXPECT_TRUE(weights.ok()) << weights.status().message();
  return std::move(*weights);
}

TEST(AttentionWeightsTest, EqualThoseOfPlainLoopsUnderTheMask) {
  TestRandom random(60);
  for (int round = 0; round < 40; ++round) {
    const Case c = RandomCase(random);
    ReferenceModel model(c.config, ToSafetensors(c.tensors));
    const size_t n = c.ids.size();
    const AlignedBuffer<float> weights = Weights(model, c, c.query);
    ASSERT_EQ(weights.size(), c.config.n_head * n * n);
    NaiveLogits(c.config, c.tensors, c.ids, c.query.window,
                [&](size_t layer, size_t head, size_t i, const auto& expected) {
                  if (layer != c.query.layer) return;
                  const float* row = weights.data() + (head * n + i) * n;
                  for (size_t j = 0; j < n; ++j) {
                    const double wanted = j <= i ? expected[j] : 0;
                    EXPECT_NEAR(row[j], wanted, 1e-4) << head << ", " << i << ", " << j;
                  }
                });
  }
}

TEST(AttentionWeightsTest, RowsSumToOneAndAreZeroOutsideOfTheMask) {
  TestRandom random(61);
  for (int round = 0; round < 200; ++round) {
    Case c = RandomCase(random);
    c.query.kv_dtype = static_cast<KvDtype>(Uniform(random, 0, 2));
    ReferenceModel model(c.config, ToSafetensors(c.tensors));
    const size_t n = c.ids.size();
    const AlignedBuffer<float> weights = Weights(model, c, c.query);
    for (size_t row = 0; row < c.config.n_head * n; ++row) {
      const size_t i = row % n;
      const float* given = weights.data() + row * n;
      EXPECT_NEAR(std::accumulate(given, given + n, 0.0), 1, 1e-5);
      for (size_t j = 0; j < n; ++j) {
        const bool seen = j <= i && (c.query.window == 0 || i - j < c.query.window);
        EXPECT_TRUE(seen || given[j] == 0) << i << ", " << j;
      }
    }
  }
}

TEST(AttentionWeightsTest, OneHeadIsThatHeadAmongAllToTheBit) {
  TestRandom random(62);
  for (int round = 0; round < 50; ++round) {
    const Case c = RandomCase(random);
    ReferenceModel model(c.config, ToSafetensors(c.tensors));
    const size_t one = c.ids.size() * c.ids.size();
    const AlignedBuffer<float> all = Weights(model, c, c.query);
    for (size_t head = 0; head < c.config.n_head; ++head) {
      AttentionQuery query = c.query;
      query.head = head;
      const AlignedBuffer<float> weights = Weights(model, c, query);
      ASSERT_EQ(weights.size(), one);
      EXPECT_EQ(std::memcmp(weights.data(), all.data() + head * one, weights.bytes()),
                0);
    }
  }
}

TEST(AttentionWeightsTest, RefusesWhatTheModelDoesNotHave) {
  TestRandom random(63);
  ReferenceModel model(random);
  const Gpt2Config& c = model.config();
  const auto code_of = [&](std::vector<int32_t> ids, AttentionQuery query) {
    return AttentionWeights(model.weights(), ids, query).status().code();
  };
  EXPECT_EQ(code_of({0}, {}), StatusCode::kOk);
  EXPECT_EQ(code_of({}, {}), StatusCode::kInvalidArgument);
  EXPECT_EQ(code_of({-1}, {}), StatusCode::kInvalidArgument);
  EXPECT_EQ(code_of({static_cast<int32_t>(c.vocab_size)}, {}),
            StatusCode::kInvalidArgument);
  EXPECT_EQ(code_of({0}, {.layer = c.n_layer}), StatusCode::kInvalidArgument);
  EXPECT_EQ(code_of({0}, {.head = c.n_head}), StatusCode::kInvalidArgument);
  EXPECT_EQ(code_of(std::vector<int32_t>(c.n_positions + 1, 0), {}),
            StatusCode::kContextFull);
}

}  // namespace
}  // namespace kvasm
