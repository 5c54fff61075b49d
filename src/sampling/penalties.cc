#include "sampling/penalties.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

namespace kvasm {

Penalties::Penalties(const PenaltyOptions& options, size_t vocab_size)
    : options_(options),
      counts_ids_(options.repetition != 1 || options.frequency != 0 ||
                  options.presence != 0),
      counts_(counts_ids_ ? vocab_size : 0),
      is_seen_(counts_.size()) {
  seen_.reserve(counts_.size());
  std::erase_if(options_.logit_bias, [&](const LogitBias& bias) {
    return static_cast<size_t>(bias.id) >= vocab_size;
  });
}

Status Penalties::Validate(const PenaltyOptions& options) {
  const auto refuse = [](const std::string& what) {
    return Status(StatusCode::kInvalidArgument, what);
  };
  if (!(options.repetition > 0 && std::isfinite(options.repetition))) {
    return refuse("repetitionPenalty must be a finite number above 0");
  }
  if (!std::isfinite(options.frequency)) {
    return refuse("frequencyPenalty must be a finite number");
  }
  if (!std::isfinite(options.presence)) {
    return refuse("presencePenalty must be a finite number");
  }
  for (const LogitBias& bias : options.logit_bias) {
    if (bias.id < 0) {
      return refuse("logitBias holds the token id " + std::to_string(bias.id));
    }
    // Written so that NaN, too, is refused.
    if (!(bias.value < std::numeric_limits<float>::infinity())) {
      return refuse("logitBias of token " + std::to_string(bias.id) +
                    " must be a finite number, or minus infinity");
    }
  }
  return OkStatus();
}

void Penalties::Add(int32_t id, bool is_output) {
  const size_t i = static_cast<size_t>(id);
  // The prompt may hold ids that cannot be drawn.
  if (i >= counts_.size()) return;
  if (!is_seen_[i]) {
    is_seen_[i] = 1;
    seen_.push_back(id);
  }
  ++counts_[i].all;
  if (is_output) ++counts_[i].output;
}

void Penalties::Remove(int32_t id, bool is_output) {
  const size_t i = static_cast<size_t>(id);
  if (i >= counts_.size()) return;
  if (counts_[i].all > 0) --counts_[i].all;
  if (is_output && counts_[i].output > 0) --counts_[i].output;
}

void Penalties::Apply(float* logits) const {
  // No option, however large, makes a logit that a model would not.
  const auto set = [&](size_t i, float value) {
    logits[i] = std::min(value, std::numeric_limits<float>::max());
  };
  for (const int32_t id : seen_) {
    const size_t i = static_cast<size_t>(id);
    const Count& count = counts_[i];
    if (count.all == 0) continue;
    float logit = logits[i];
    logit = logit > 0 ? logit / options_.repetition : logit * options_.repetition;
    if (count.output > 0) {
      logit -= static_cast<float>(count.output) * options_.frequency;
      logit -= options_.presence;
    }
    set(i, logit);
  }
  for (const LogitBias& bias : options_.logit_bias) {
    const size_t i = static_cast<size_t>(bias.id);
    set(i, logits[i] + bias.value);
  }
}

}  // namespace kvasm
