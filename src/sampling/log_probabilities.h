// What a model thinks of tokens: logarithms of the probabilities that logits stand for.

#ifndef KVASM_SAMPLING_LOG_PROBABILITIES_H_
#define KVASM_SAMPLING_LOG_PROBABILITIES_H_

#include <cstddef>
#include <cstdint>
#include <span>

namespace kvasm {

struct TokenLogProbability {
  int32_t id;
  float value;  // Natural logarithm; minus infinity for a probability of 0.
};

// log(softmax(logits))[id]. The same of the top.size() likeliest ids goes to `top`, the
// likeliest first, equal ones by id, the lowest first. One pass over the logits;
// nothing is allocated. NaN where the logits hold NaN, +infinity, or no finite number.
//
// logits: [n]. Preconditions: id is below n, top.size() at most n.
float LogProbabilities(const float* logits, size_t n, int32_t id,
                       std::span<TokenLogProbability> top);

}  // namespace kvasm

#endif  // KVASM_SAMPLING_LOG_PROBABILITIES_H_
