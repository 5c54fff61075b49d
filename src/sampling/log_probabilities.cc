#include "sampling/log_probabilities.h"

#include <cmath>
#include <limits>

namespace kvasm {

float LogProbabilities(const float* logits, size_t n, int32_t id,
                       std::span<TokenLogProbability> top) {
  constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();
  float max = kMinusInfinity;
  // Of exp(logit - max), for the largest logit so far (Milakov and Gimelshein 2018).
  double sum = 0;
  size_t found = 0;
  for (size_t i = 0; i < n; ++i) {
    const float logit = logits[i];
    if (found < top.size() || (found > 0 && logit > top[found - 1].value)) {
      if (found < top.size()) ++found;
      size_t at = found - 1;
      for (; at > 0 && logit > top[at - 1].value; --at) top[at] = top[at - 1];
      top[at] = {static_cast<int32_t>(i), logit};
    }
    // Adds nothing, and would make a NaN before there is a finite maximum.
    if (logit == kMinusInfinity) continue;
    if (logit > max) {
      sum = sum * std::exp(max - logit) + 1;
      max = logit;
    } else {
      sum += std::exp(logit - max);
    }
  }
  const double normalizer = std::log(sum) + max;
  for (TokenLogProbability& token : top) {
    token.value = static_cast<float>(token.value - normalizer);
  }
  return static_cast<float>(logits[id] - normalizer);
}

}  // namespace kvasm
