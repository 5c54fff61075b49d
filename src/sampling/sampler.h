// Draws the next token from logits.

#ifndef KVASM_SAMPLING_SAMPLER_H_
#define KVASM_SAMPLING_SAMPLER_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/status.h"
#include "sampling/random.h"

namespace kvasm {

struct SamplerOptions {
  float temperature = 1.0f;  // 0 is greedy.
  size_t top_k = 0;    // 0 is off; so is anything at or above the vocabulary's size.
  float top_p = 1.0f;  // 1 is off (nucleus sampling, Holtzman et al. 2020).
  uint64_t seed = 0;
};

// The order is temperature, then top_k, then top_p. Equal logits rank by id, the lowest
// first. Nothing is allocated after construction.
class Sampler {
 public:
  // Only ids below `vocab_size` are drawn: a checkpoint may be padded with rows that
  // mean nothing.
  Sampler(const SamplerOptions& options, size_t vocab_size);

  // kInvalidArgument, naming the option.
  static Status Validate(const SamplerOptions& options);

  // The id drawn. kNonFinite for NaN, +infinity, or no finite logit at all; minus
  // infinity merely rules an id out.
  StatusOr<int32_t> Sample(const float* logits);

  // Only ids below this are drawn.
  size_t vocab_size() const { return vocab_size_; }

 private:
  struct Candidate {
    float logit;
    int32_t id;
  };
  // Best first.
  static bool Better(const Candidate& a, const Candidate& b) {
    return a.logit != b.logit ? a.logit > b.logit : a.id < b.id;
  }

  int32_t Draw(size_t count, float max);

  SamplerOptions options_;
  size_t vocab_size_;
  Random random_;
  std::vector<Candidate> candidates_;
  std::vector<float> weights_;  // exp((logit - max) / temperature), by candidate.
};

}  // namespace kvasm

#endif  // KVASM_SAMPLING_SAMPLER_H_
