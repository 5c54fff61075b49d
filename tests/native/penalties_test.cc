#include "sampling/penalties.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "random_model.h"

namespace kvasm {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

using Ids = std::vector<int32_t>;

std::vector<float> Applied(const PenaltyOptions& options, const Ids& prompt,
                           const Ids& output, std::vector<float> logits) {
  Penalties penalties(options, logits.size());
  for (const int32_t id : prompt) penalties.Add(id, /*is_output=*/false);
  for (const int32_t id : output) penalties.Add(id, /*is_output=*/true);
  penalties.Apply(logits.data());
  return logits;
}

// Straight from the definitions, over the whole vocabulary.
std::vector<float> Naive(const PenaltyOptions& options, const Ids& prompt,
                         const Ids& output, std::vector<float> logits) {
  for (size_t i = 0; i < logits.size(); ++i) {
    const int32_t id = static_cast<int32_t>(i);
    const auto in_prompt = std::count(prompt.begin(), prompt.end(), id);
    const auto in_output = std::count(output.begin(), output.end(), id);
    if (in_prompt + in_output > 0) {
      if (logits[i] > 0) {
        logits[i] /= options.repetition;
      } else {
        logits[i] *= options.repetition;
      }
    }
    logits[i] -= static_cast<float>(in_output) * options.frequency;
    logits[i] -= in_output > 0 ? options.presence : 0;
    for (const LogitBias& bias : options.logit_bias) {
      if (bias.id == id) logits[i] += bias.value;
    }
  }
  return logits;
}

TEST(PenaltiesTest, RepetitionDividesPositiveAndMultipliesNegativeLogitsOnceB67) {
  const std::vector<float> expected = {1, -4, 5};
  EXPECT_EQ(Applied({.repetition = 2}, {0, 1}, {}, {2, -2, 5}), expected);
  EXPECT_EQ(Applied({.repetition = 2}, {0, 0, 0, 1}, {1, 0}, {2, -2, 5}), expected);
  EXPECT_EQ(Applied({.repetition = 2}, {}, {1, 0}, {2, -2, 5}), expected);
}

TEST(PenaltiesTest, FrequencyAndPresenceCountTheOutputOnly) {
  const std::vector<float> logits = {1, 1, 1};
  EXPECT_EQ(Applied({.frequency = 0.5f}, {0, 1}, {1, 1, 2}, logits),
            (std::vector<float>{1, 0, 0.5f}));
  EXPECT_EQ(Applied({.presence = 0.5f}, {0, 1}, {1, 1, 2}, logits),
            (std::vector<float>{1, 0.5f, 0.5f}));
  // Below 0, they favour what is there.
  EXPECT_EQ(Applied({.frequency = -1, .presence = -0.5f}, {}, {0, 0}, logits),
            (std::vector<float>{3.5f, 1, 1}));
}

TEST(PenaltiesTest, BiasIsAddedLastAndRulesIdsOut) {
  EXPECT_EQ(Applied({.repetition = 2, .logit_bias = {{0, 10}, {1, -kInfinity}}}, {0, 1},
                    {}, {4, 4, 4}),
            (std::vector<float>{12, -kInfinity, 4}));
  // An id that is padding, and one that is named twice.
  EXPECT_EQ(Applied({.logit_bias = {{7, 1}, {1, 2}, {1, 3}}}, {}, {}, {0, 0}),
            (std::vector<float>{0, 5}));
}

TEST(PenaltiesTest, AreThoseOfTheDefinitions) {
  TestRandom random(1);
  for (int round = 0; round < 300; ++round) {
    const size_t n = Uniform(random, 1, 12);
    const auto number = [&] { return RandomFloats(random, 1)[0]; };
    PenaltyOptions options;
    if (Uniform(random, 0, 1) == 0) options.repetition = 1.5f + number();
    if (Uniform(random, 0, 1) == 0) options.frequency = number();
    if (Uniform(random, 0, 1) == 0) options.presence = number();
    for (size_t i = Uniform(random, 0, 2); i > 0; --i) {
      options.logit_bias.push_back(
          {static_cast<int32_t>(Uniform(random, 0, n)), number()});
    }
    const Ids prompt = RandomIds(random, Uniform(random, 0, 9), n);
    const Ids output = RandomIds(random, Uniform(random, 0, 9), n);
    const std::vector<float> logits = RandomFloats(random, n);
    const auto expected = Naive(options, prompt, output, logits);
    EXPECT_EQ(Applied(options, prompt, output, logits), expected);

    // Added and taken back, ids leave nothing behind.
    Penalties penalties(options, n);
    for (const int32_t id : output) penalties.Add(id, /*is_output=*/true);
    for (const int32_t id : prompt) penalties.Add(id, /*is_output=*/false);
    for (const int32_t id : prompt) penalties.Remove(id, /*is_output=*/false);
    for (const int32_t id : output) penalties.Remove(id, /*is_output=*/true);
    std::vector<float> untouched = logits;
    penalties.Apply(untouched.data());
    EXPECT_EQ(untouched, Naive(options, {}, {}, logits));
  }
}

TEST(PenaltiesTest, MakeNoLogitInfinite) {
  const float big = std::numeric_limits<float>::max();
  EXPECT_EQ(Applied({.repetition = 1e-30f}, {0, 1}, {}, {1e30f, -1e30f})[0], big);
  EXPECT_EQ(Applied({.logit_bias = {{0, big}, {0, big}}}, {}, {}, {big})[0], big);
  EXPECT_EQ(Applied({.repetition = 2}, {0}, {}, {-kInfinity})[0], -kInfinity);
}

TEST(PenaltiesTest, OptionsOutOfRangeAreNamed) {
  const auto expect_refused = [](const PenaltyOptions& options, const char* name) {
    const Status status = Penalties::Validate(options);
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
    EXPECT_NE(status.message().find(name), std::string::npos) << status.message();
  };
  for (const float bad : {0.0f, -1.0f, kNan, kInfinity}) {
    expect_refused({.repetition = bad}, "repetitionPenalty");
  }
  for (const float bad : {kNan, kInfinity, -kInfinity}) {
    expect_refused({.frequency = bad}, "frequencyPenalty");
    expect_refused({.presence = bad}, "presencePenalty");
  }
  expect_refused({.logit_bias = {{-1, 0}}}, "logitBias holds the token id -1");
  expect_refused({.logit_bias = {{3, kInfinity}}}, "logitBias of token 3");
  expect_refused({.logit_bias = {{3, kNan}}}, "logitBias of token 3");
  EXPECT_TRUE(Penalties::Validate({.logit_bias = {{3, -kInfinity}}}).ok());
}

}  // namespace
}  // namespace kvasm
