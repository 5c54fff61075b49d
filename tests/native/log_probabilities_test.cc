#include "sampling/log_probabilities.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "random_model.h"

namespace kvasm {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// The textbook's: a stable softmax in double, and a sort of everything.
std::vector<TokenLogProbability> Sorted(const std::vector<float>& logits) {
  const double max = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (const float logit : logits) sum += std::exp(logit - max);
  std::vector<TokenLogProbability> all;
  for (size_t i = 0; i < logits.size(); ++i) {
    all.push_back(
        {static_cast<int32_t>(i), static_cast<float>(logits[i] - max - std::log(sum))});
  }
  std::stable_sort(all.begin(), all.end(), [&](const auto& a, const auto& b) {
    return logits[static_cast<size_t>(a.id)] > logits[static_cast<size_t>(b.id)];
  });
  return all;
}

TEST(LogProbabilitiesTest, AreThoseOfASortedSoftmax) {
  TestRandom random(1);
  for (int round = 0; round < 200; ++round) {
    const size_t n = Uniform(random, 1, 60);
    std::vector<float> logits = RandomFloats(random, n);
    for (float& logit : logits) {
      logit *= 20;
      // Ties, and ids that are ruled out.
      if (Uniform(random, 0, 3) == 0) logit = std::round(logit / 10);
      if (Uniform(random, 0, 9) == 0) logit = -kInfinity;
    }
    logits[Uniform(random, 0, n - 1)] = 1;
    const auto expected = Sorted(logits);
    std::vector<TokenLogProbability> top(Uniform(random, 0, n));
    const size_t rank = Uniform(random, 0, n - 1);
    const float value = LogProbabilities(logits.data(), n, expected[rank].id, top);
    if (std::isinf(value)) {
      EXPECT_EQ(value, expected[rank].value);
    } else {
      EXPECT_NEAR(value, expected[rank].value, 1e-5);
    }
    for (size_t i = 0; i < top.size(); ++i) {
      EXPECT_EQ(top[i].id, expected[i].id) << "rank " << i << " of " << n;
      if (std::isinf(top[i].value)) continue;
      EXPECT_NEAR(top[i].value, expected[i].value, 1e-5);
    }
  }
}

TEST(LogProbabilitiesTest, StandLargeLogitsOfEitherSign) {
  const std::vector<float> logits = {-3e38f, 1e4f, 1e4f, -1e4f};
  TokenLogProbability top[2];
  EXPECT_NEAR(LogProbabilities(logits.data(), 4, 2, top), std::log(0.5), 1e-6);
  EXPECT_EQ(top[0].id, 1);
  EXPECT_EQ(top[1].id, 2);
  EXPECT_NEAR(LogProbabilities(logits.data(), 1, 0, {}), 0, 1e-6);
}

TEST(LogProbabilitiesTest, OfLogitsThatAreNoNumbersAreNoNumbersB68) {
  const float kNan = std::numeric_limits<float>::quiet_NaN();
  for (const std::vector<float>& logits : {std::vector<float>{kNan, 1, 3},
                                           {1, 3, kNan},
                                           {1, kInfinity, 0},
                                           {-kInfinity, -kInfinity, -kInfinity}}) {
    EXPECT_TRUE(std::isnan(LogProbabilities(logits.data(), 3, 1, {})));
  }
}

}  // namespace
}  // namespace kvasm
