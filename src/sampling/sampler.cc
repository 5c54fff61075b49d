#include "sampling/sampler.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

namespace kvasm {

Sampler::Sampler(const SamplerOptions& options, size_t vocab_size)
    : options_(options),
      vocab_size_(vocab_size),
      random_(options.seed),
      penalties_(options.penalties, vocab_size),
      penalized_(penalties_.active() ? vocab_size : 0),
      candidates_(options.temperature == 0 ? 0 : vocab_size),
      weights_(candidates_.size()) {}

Status Sampler::Validate(const SamplerOptions& options) {
  if (!(options.temperature >= 0) || std::isinf(options.temperature)) {
    return Status(StatusCode::kInvalidArgument,
                  "temperature must be a finite number, 0 or more");
  }
  if (!(options.top_p > 0 && options.top_p <= 1)) {
    return Status(StatusCode::kInvalidArgument, "top_p must be above 0 and at most 1");
  }
  if (!(options.min_p >= 0 && options.min_p <= 1)) {
    return Status(StatusCode::kInvalidArgument, "min_p must be from 0 to 1");
  }
  return Penalties::Validate(options.penalties);
}

void Sampler::AddPrompt(std::span<const int32_t> ids) {
  for (const int32_t id : ids) penalties_.Add(id, /*is_output=*/false);
}

StatusOr<int32_t> Sampler::Sample(const float* logits) {
  for (size_t id = 0; id < vocab_size_; ++id) {
    // Written so that NaN, too, takes the way out.
    if (!(logits[id] < std::numeric_limits<float>::infinity())) {
      return Status(
          StatusCode::kNonFinite,
          "the logit of token " + std::to_string(id) + " is " +
              (std::isnan(logits[id]) ? "NaN" : "infinite") +
              "; the model's weights are damaged, or overflow in this precision");
    }
  }
  const float* penalized = logits;
  if (penalties_.active()) {
    std::copy_n(logits, vocab_size_, penalized_.begin());
    penalties_.Apply(penalized_.data());
    penalized = penalized_.data();
  }
  StatusOr<int32_t> id = Choose(penalized);
  if (id.ok()) penalties_.Add(*id, /*is_output=*/true);
  return id;
}

int32_t Sampler::Best(const float* logits) const {
  float max = -std::numeric_limits<float>::infinity();
  int32_t best = -1;
  for (size_t id = 0; id < vocab_size_; ++id) {
    if (logits[id] > max) {
      max = logits[id];
      best = static_cast<int32_t>(id);
    }
  }
  return best;
}

StatusOr<int32_t> Sampler::Choose(const float* logits) {
  const int32_t best = Best(logits);
  if (best < 0) {
    return Status(StatusCode::kNonFinite,
                  "every logit is minus infinity: no token is left");
  }
  if (options_.temperature == 0) return best;

  for (size_t id = 0; id < vocab_size_; ++id) {
    candidates_[id] = {logits[id], static_cast<int32_t>(id)};
  }
  size_t count = vocab_size_;
  if (options_.top_k > 0 && options_.top_k < count) {
    count = options_.top_k;
    std::nth_element(candidates_.begin(), candidates_.begin() + (count - 1),
                     candidates_.end(), Better);
  }
  return Draw(count, logits[best]);
}

int32_t Sampler::Draw(size_t count, float max) {
  // A draw walks the candidates in a fixed order: by rank where top_p needs it, else by
  // id, which nth_element has mixed up.
  const bool by_rank = options_.top_p < 1;
  const auto end = candidates_.begin() + static_cast<std::ptrdiff_t>(count);
  if (by_rank) {
    std::sort(candidates_.begin(), end, Better);
  } else if (count < vocab_size_) {
    std::sort(candidates_.begin(), end,
              [](const Candidate& a, const Candidate& b) { return a.id < b.id; });
  }
  float total = 0;
  for (size_t i = 0; i < count; ++i) {
    weights_[i] = std::exp((candidates_[i].logit - max) / options_.temperature);
    total += weights_[i];
  }
  if (by_rank) {
    // The smallest set of likeliest candidates whose probabilities sum to top_p or
    // more.
    float kept = 0;
    size_t n = 0;
    while (n < count && (n == 0 || kept / total < options_.top_p)) {
      kept += weights_[n++];
    }
    count = n;
    total = kept;
  }
  if (options_.min_p > 0) {
    // The likeliest has the weight 1.
    total = 0;
    for (size_t i = 0; i < count; ++i) {
      if (weights_[i] < options_.min_p) weights_[i] = 0;
      total += weights_[i];
    }
  }
  const double target = random_.NextUnit() * total;
  double sum = 0;
  size_t last = 0;
  for (size_t i = 0; i < count; ++i) {
    if (weights_[i] == 0) continue;
    sum += weights_[i];
    last = i;
    if (target < sum) break;
  }
  // Past the end only where rounding made the sum fall short of `total`.
  return candidates_[last].id;
}

}  // namespace kvasm
