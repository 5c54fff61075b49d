// Draws the next token from logits.

#ifndef KVASM_SAMPLING_SAMPLER_H_
#define KVASM_SAMPLING_SAMPLER_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/status.h"
#include "sampling/penalties.h"
#include "sampling/random.h"

namespace kvasm {

struct SamplerOptions {
  float temperature = 1.0f;  // 0 is greedy.
  size_t top_k = 0;    // 0 is off; so is anything at or above the vocabulary's size.
  float top_p = 1.0f;  // 1 is off (nucleus sampling, Holtzman et al. 2020).
  // Keeps ids that are at least this as likely as the likeliest; 0 is off (Nguyen et
  // al. 2024).
  float min_p = 0.0f;
  uint64_t seed = 0;
  PenaltyOptions penalties;
};

// The order is that of Hugging Face transformers: penalties and bias, in the order of
// PenaltyOptions; temperature; top_k; top_p, of what top_k has left; min_p. Greedy
// draws go by penalties and bias, too. Equal logits rank by id, the lowest first.
// Nothing is allocated after construction.
class Sampler {
 public:
  // Only ids below `vocab_size` are drawn: a checkpoint may be padded with rows that
  // mean nothing.
  Sampler(const SamplerOptions& options, size_t vocab_size);

  // kInvalidArgument, naming the option.
  static Status Validate(const SamplerOptions& options);

  // Tells of ids that were there before the first draw.
  void AddPrompt(std::span<const int32_t> ids);
  // Takes back an id of the prompt, or one that was drawn.
  void Remove(int32_t id, bool is_output) { penalties_.Remove(id, is_output); }

  // The id drawn, which counts as output from then on. logits: [vocab_size] or more;
  // they stay as they are. kNonFinite for NaN, +infinity, or no finite logit at all;
  // minus infinity merely rules an id out.
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

  // The likeliest id, the lowest of equals; -1 where all are ruled out.
  int32_t Best(const float* logits) const;
  StatusOr<int32_t> Choose(const float* logits);
  int32_t Draw(size_t count, float max);

  SamplerOptions options_;
  size_t vocab_size_;
  Random random_;
  Penalties penalties_;
  std::vector<float> penalized_;  // [vocab_size], where there are penalties.
  std::vector<Candidate> candidates_;
  std::vector<float> weights_;  // exp((logit - max) / temperature), by candidate.
};

}  // namespace kvasm

#endif  // KVASM_SAMPLING_SAMPLER_H_
