#include "sampling/sampler.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>
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
  EXPECT_TRUE(Sampler::Validate({}).ok());
}

}  // namespace
}  // namespace kvasm
