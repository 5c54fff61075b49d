#include "sampling/sampler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <set>

#include "random_model.h"

namespace kvasm {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

std::vector<int32_t> Draws(const SamplerOptions& options,
                           const std::vector<float>& logits, int count) {
  Sampler sampler(options, logits.size());
  std::vector<int32_t> ids;
  for (int i = 0; i < count; ++i) ids.push_back(sampler.Sample(logits.data()).value());
  return ids;
}

std::set<int32_t> Support(const SamplerOptions& options,
                          const std::vector<float>& logits) {
  const std::vector<int32_t> ids = Draws(options, logits, 3000);
  return {ids.begin(), ids.end()};
}

std::vector<float> Logs(std::vector<float> probabilities) {
  for (float& p : probabilities) p = std::log(p);
  return probabilities;
}

TEST(SamplerTest, TemperatureZeroIsGreedyB61) {
  for (const int32_t id : Draws({.temperature = 0}, {1, 2}, 20)) EXPECT_EQ(id, 1);
}

TEST(SamplerTest, TiesGoToTheLowestIdB70) {
  EXPECT_EQ(Draws({.temperature = 0}, {0, 1, 1}, 1)[0], 1);
  EXPECT_EQ(Support({.temperature = 1, .top_k = 1}, {0, 1, 1}), (std::set<int32_t>{1}));
  EXPECT_EQ(Support({.temperature = 1, .top_p = 0.1f}, {0, 1, 1}),
            (std::set<int32_t>{1}));
  // Also where a penalty makes the tie.
  Sampler penalized({.temperature = 0, .penalties = {.repetition = 2}}, 3);
  penalized.AddPrompt(std::vector<int32_t>{2});
  EXPECT_EQ(penalized.Sample(std::vector<float>{0, 1, 2}.data()).value(), 1);
}

TEST(SamplerTest, TopKZeroOrAtLeastTheVocabularyIsOffB63B64) {
  TestRandom random(1);
  const std::vector<float> logits = RandomFloats(random, 5);
  const std::vector<int32_t> off = Draws({.temperature = 1, .seed = 3}, logits, 100);
  for (const size_t k : {0u, 5u, 50u}) {
    EXPECT_EQ(Draws({.temperature = 1, .top_k = k, .seed = 3}, logits, 100), off) << k;
  }
}

TEST(SamplerTest, TopKKeepsTheKLikeliest) {
  EXPECT_EQ(Support({.temperature = 5, .top_k = 3}, {0, 3, 1, 2, -1}),
            (std::set<int32_t>{1, 2, 3}));
}

TEST(SamplerTest, TopPStopsWhereTheSumReachesItB65) {
  const std::vector<float> logits = Logs({0.3f, 0.1f, 0.1f, 0.5f});
  EXPECT_EQ(Support({.temperature = 1, .top_p = 0.79f}, logits),
            (std::set<int32_t>{0, 3}));
  EXPECT_EQ(Support({.temperature = 1, .top_p = 0.82f}, logits),
            (std::set<int32_t>{0, 1, 3}));
  EXPECT_EQ(Support({.temperature = 1, .top_p = 1e-9f}, logits),
            (std::set<int32_t>{3}));
}

TEST(SamplerTest, TopPIsExactWhereTheSumEqualsItB65) {
  // Powers of two, so that the probabilities are exact: 1/2, 1/4, 1/8, 1/8.
  const std::vector<float> logits = Logs({0.125f, 0.5f, 0.25f, 0.125f});
  EXPECT_EQ(Support({.temperature = 1, .top_p = 0.75f}, logits),
            (std::set<int32_t>{1, 2}));
}

TEST(SamplerTest, MinPKeepsWhatIsAtLeastThatMuchOfTheLikeliest) {
  const std::vector<float> logits = Logs({0.25f, 0.5f, 0.125f, 0.0625f, 0.0625f});
  EXPECT_EQ(Support({.min_p = 0.25f}, logits), (std::set<int32_t>{0, 1, 2}));
  EXPECT_EQ(Support({.min_p = 0.26f}, logits), (std::set<int32_t>{0, 1}));
  EXPECT_EQ(Support({.min_p = 1}, logits), (std::set<int32_t>{1}));
  EXPECT_EQ(Support({.top_k = 2, .min_p = 0.1f}, logits), (std::set<int32_t>{0, 1}));
  EXPECT_EQ(Support({.top_p = 0.7f, .min_p = 0.1f}, logits), (std::set<int32_t>{0, 1}));
}

TEST(SamplerTest, WhatWasDrawnIsPenalizedFromThenOn) {
  Sampler sampler({.temperature = 0, .penalties = {.presence = 10}}, 3);
  sampler.AddPrompt(std::vector<int32_t>{0, 1, 2});
  const std::vector<float> logits = {1, 3, 2};
  for (const int32_t expected : {1, 2, 0, 1}) {
    EXPECT_EQ(sampler.Sample(logits.data()).value(), expected);
  }
}

TEST(SamplerTest, ABiasThatLeavesNoTokenIsAnError) {
  Sampler sampler({.penalties = {.logit_bias = {{0, -kInfinity}}}}, 1);
  const float logit = 1;
  EXPECT_EQ(sampler.Sample(&logit).status().code(), StatusCode::kNonFinite);
}

TEST(SamplerTest, NonFiniteLogitsAreAnErrorB68) {
  for (const float temperature : {0.0f, 1.0f}) {
    for (const std::vector<float>& logits : {std::vector<float>{kNan, 1, 3},
                                             {1, 3, kNan},
                                             {kNan, kNan, kNan},
                                             {1, kInfinity, 0},
                                             {-kInfinity, -kInfinity, -kInfinity}}) {
      Sampler sampler({.temperature = temperature}, 3);
      const StatusOr<int32_t> id = sampler.Sample(logits.data());
      ASSERT_FALSE(id.ok());
      EXPECT_EQ(id.status().code(), StatusCode::kNonFinite);
    }
  }
}

TEST(SamplerTest, MinusInfinityRulesAnIdOut) {
  EXPECT_EQ(Support({.temperature = 1}, {-kInfinity, 0, -kInfinity, 0}),
            (std::set<int32_t>{1, 3}));
}

TEST(SamplerTest, IdsBeyondTheVocabularyAreNeverDrawnB74) {
  const std::vector<float> logits = {0, 1, 99, 98};
  for (const float temperature : {0.0f, 3.0f}) {
    Sampler sampler({.temperature = temperature}, 2);
    for (int i = 0; i < 200; ++i) EXPECT_LT(sampler.Sample(logits.data()).value(), 2);
  }
}

TEST(SamplerTest, OneSeedDrawsOneSequence) {
  TestRandom random(2);
  const std::vector<float> logits = RandomFloats(random, 100);
  for (const SamplerOptions& options :
       {SamplerOptions{}, SamplerOptions{.top_k = 20}, SamplerOptions{.top_p = 0.8f}}) {
    SamplerOptions a = options, b = options;
    a.seed = b.seed = 5;
    EXPECT_EQ(Draws(a, logits, 200), Draws(b, logits, 200));
    b.seed = 6;
    EXPECT_NE(Draws(a, logits, 200), Draws(b, logits, 200));
  }
}

TEST(SamplerTest, FrequenciesFollowTheTemperedSoftmax) {
  const std::vector<float> logits = {0, 1, 2, -1};
  constexpr int kDraws = 40000;
  for (const float temperature : {0.5f, 1.0f, 2.0f}) {
    std::map<int32_t, int> counts;
    for (const int32_t id :
         Draws({.temperature = temperature, .seed = 9}, logits, kDraws)) {
      ++counts[id];
    }
    double total = 0;
    for (const float logit : logits) total += std::exp(logit / temperature);
    for (int32_t id = 0; id < 4; ++id) {
      const double p = std::exp(logits[static_cast<size_t>(id)] / temperature) / total;
      // Five standard deviations of a binomial count; the seed is fixed.
      EXPECT_NEAR(counts[id], kDraws * p, 5 * std::sqrt(kDraws * p * (1 - p)));
    }
  }
}

TEST(SamplerTest, OptionsOutOfRangeAreNamed) {
  const auto message = [](const SamplerOptions& options) {
    const Status status = Sampler::Validate(options);
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
    return status.message();
  };
  for (const float t : {-1.0f, kNan, kInfinity}) {
    EXPECT_NE(message({.temperature = t}).find("temperature"), std::string::npos);
  }
  for (const float p : {0.0f, -1.0f, 1.1f, kNan}) {
    EXPECT_NE(message({.top_p = p}).find("top_p"), std::string::npos);
  }
  for (const float p : {-0.1f, 1.1f, kNan}) {
    EXPECT_NE(message({.min_p = p}).find("min_p"), std::string::npos);
  }
  EXPECT_NE(message({.penalties = {.repetition = 0}}).find("repetitionPenalty"),
            std::string::npos);
  EXPECT_TRUE(Sampler::Validate({}).ok());
}

// Each stage on its own, on the whole distribution.
int32_t NaiveSample(const SamplerOptions& options, std::vector<float> logits,
                    const std::vector<int32_t>& prompt,
                    const std::vector<int32_t>& output, Random& random) {
  Penalties penalties(options.penalties, logits.size());
  for (const int32_t id : prompt) penalties.Add(id, /*is_output=*/false);
  for (const int32_t id : output) penalties.Add(id, /*is_output=*/true);
  penalties.Apply(logits.data());

  std::vector<int32_t> ids(logits.size());
  std::iota(ids.begin(), ids.end(), 0);
  const auto logit = [&](int32_t id) { return logits[static_cast<size_t>(id)]; };
  std::stable_sort(ids.begin(), ids.end(),
                   [&](int32_t a, int32_t b) { return logit(a) > logit(b); });
  const float max = logit(ids[0]);
  if (options.temperature == 0) return ids[0];

  if (options.top_k > 0 && options.top_k < ids.size()) ids.resize(options.top_k);
  if (options.top_p == 1) std::sort(ids.begin(), ids.end());
  const auto weight = [&](int32_t id) {
    return std::exp((logit(id) - max) / options.temperature);
  };
  const auto sum = [&](const std::vector<int32_t>& of) {
    float total = 0;
    for (const int32_t id : of) total += weight(id);
    return total;
  };
  if (options.top_p < 1) {
    const float all = sum(ids);
    std::vector<int32_t> kept;
    for (const int32_t id : ids) {
      if (!kept.empty() && sum(kept) / all >= options.top_p) break;
      kept.push_back(id);
    }
    ids = kept;
  }
  std::erase_if(ids, [&](int32_t id) { return weight(id) < options.min_p; });
  std::erase_if(ids, [&](int32_t id) { return weight(id) == 0; });
  const double target = random.NextUnit() * sum(ids);
  double passed = 0;
  for (const int32_t id : ids) {
    passed += weight(id);
    if (target < passed) return id;
  }
  return ids.back();
}

TEST(SamplerTest, DrawsWhatEachStageOnItsOwnLeadsTo) {
  TestRandom random(3);
  for (int round = 0; round < 1000; ++round) {
    const size_t n = Uniform(random, 1, 20);
    const auto maybe = [&](float off, float on) {
      return Uniform(random, 0, 1) == 0 ? off : on;
    };
    const auto unit = [&] {
      return static_cast<float>(Uniform(random, 1, 1000)) / 1000;
    };
    SamplerOptions options;
    options.temperature = maybe(1, maybe(0, 3 * unit()));
    options.top_k = Uniform(random, 0, 1) * Uniform(random, 0, n + 2);
    options.top_p = maybe(1, unit());
    options.min_p = maybe(0, unit() * unit());
    options.seed = static_cast<uint64_t>(round);
    options.penalties.repetition = maybe(1, 3 * unit());
    options.penalties.frequency = maybe(0, unit());
    options.penalties.presence = maybe(0, unit());
    if (Uniform(random, 0, 3) == 0 && n > 1) {
      options.penalties.logit_bias = {{0, maybe(2, -kInfinity)}};
    }
    const std::vector<int32_t> prompt = RandomIds(random, Uniform(random, 0, 5), n);
    std::vector<int32_t> output;
    Sampler sampler(options, n);
    sampler.AddPrompt(prompt);
    Random naive_random(options.seed);
    for (int i = 0; i < 10; ++i) {
      std::vector<float> logits = RandomFloats(random, n);
      for (float& logit : logits) {
        logit = Uniform(random, 0, 2) == 0 ? std::round(3 * logit) : 3 * logit;
      }
      const int32_t expected =
          NaiveSample(options, logits, prompt, output, naive_random);
      const std::vector<float> before = logits;
      ASSERT_EQ(sampler.Sample(logits.data()).value(), expected) << round;
      ASSERT_EQ(logits, before);
      output.push_back(expected);
    }
  }
}

}  // namespace
}  // namespace kvasm
