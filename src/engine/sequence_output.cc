// What a sequence takes from a forward pass.

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "engine/sequence.h"

namespace kvasm {

bool Sequence::NeedsLogits(size_t position) const {
  const bool is_last = position + 1 == ids_.size();
  switch (output_) {
    case Output::kTokens:
      return is_last || (position + 1 >= unscored_ && position + 1 < unscored_end_);
    case Output::kLastLogits:
      return is_last;
    case Output::kAllLogits:
      return true;
    case Output::kLogProbabilities:
      return !is_last;
    case Output::kLastHidden:
    case Output::kMeanHidden:
      return false;
  }
  return false;
}

bool Sequence::NeedsAllRows() const {
  return output_ == Output::kAllLogits || output_ == Output::kLogProbabilities ||
         output_ == Output::kMeanHidden || unscored_ < unscored_end_;
}

void Sequence::ClearValues() {
  // What is known of a prompt does not change when it is computed anew.
  if (output_ == Output::kTokens) return;
  values_.clear();
  if (output_ == Output::kLogProbabilities) values_.reserve(ids_.size());
  if (output_ == Output::kLastHidden || output_ == Output::kMeanHidden) {
    values_.resize(engine_->config().n_embd);
  }
}

void Sequence::ScoreFrom(size_t position, std::optional<size_t> likeliest) {
  values_.clear();
  unscored_ = std::max<size_t>(position, 1);
  unscored_end_ = likeliest ? ids_.size() : 0;
  if (unscored_ >= unscored_end_) return;
  likeliest_.resize(std::min(*likeliest, sampler_->vocab_size()));
  values_.reserve((unscored_end_ - unscored_) * (1 + 2 * likeliest_.size()));
  // The logits before the first of them are wanted once more.
  if (computed_ >= unscored_) RollBack(unscored_ - 1);
}

StepEvent Sequence::PrefillOrDone() {
  if (computed_ < ids_.size() || output_ == Output::kTokens) {
    return {this, StepEvent::Kind::kPrefill, 0};
  }
  LeaveToLaterOnes();
  cache_.Clear();
  return {this, StepEvent::Kind::kDone, 0};
}

StepEvent Sequence::TakeOutput(size_t first_row, size_t rows, size_t logits_row,
                               size_t logits_count) {
  switch (output_) {
    case Output::kTokens:
      return TakePromptAndDraw(rows, logits_row);
    case Output::kLastLogits:
    case Output::kAllLogits:
      logits_row_ = logits_row;
      logits_count_ = logits_count;
      break;
    case Output::kLogProbabilities:
      return TakeLogProbabilities(rows, logits_row, logits_count);
    case Output::kLastHidden:
      if (computed_ == ids_.size()) {
        const float* hidden = engine_->model_.FinalHidden(first_row + rows - 1);
        values_.assign(hidden, hidden + values_.size());
      }
      break;
    case Output::kMeanHidden:
      for (size_t r = 0; r < rows; ++r) {
        const float* hidden = engine_->model_.FinalHidden(first_row + r);
        for (size_t i = 0; i < values_.size(); ++i) values_[i] += hidden[i];
      }
      if (computed_ == ids_.size()) {
        for (double& value : values_) value /= static_cast<double>(ids_.size());
      }
      break;
  }
  return PrefillOrDone();
}

StatusOr<double> Sequence::LogProbabilityAt(size_t position, size_t logits_row,
                                            std::span<TokenLogProbability> top) const {
  const size_t drawable = sampler_->vocab_size();
  const size_t id = static_cast<size_t>(ids_[position]);
  const float value =
      kvasm::LogProbabilities(engine_->model_.logits(logits_row), drawable,
                              id < drawable ? ids_[position] : 0, top);
  if (std::isnan(value)) {
    return Status(
        StatusCode::kNonFinite,
        "the logits before token " + std::to_string(position) +
            " are no numbers; the model's weights are damaged, or overflow in "
            "this precision");
  }
  return id < drawable ? value : -std::numeric_limits<double>::infinity();
}

StepEvent Sequence::TakeLogProbabilities(size_t rows, size_t logits_row,
                                         size_t logits_count) {
  for (size_t i = 0; i < logits_count; ++i) {
    const StatusOr<double> value =
        LogProbabilityAt(computed_ - rows + i + 1, logits_row + i, {});
    if (!value.ok()) return Fail(value.status());
    values_.push_back(value.value());
  }
  return PrefillOrDone();
}

StepEvent Sequence::TakePromptAndDraw(size_t rows, size_t logits_row) {
  for (size_t position = computed_ - rows; position < computed_; ++position) {
    if (!NeedsLogits(position)) continue;
    if (position + 1 == ids_.size()) return Draw(logits_row);
    const StatusOr<double> value =
        LogProbabilityAt(position + 1, logits_row++, likeliest_);
    if (!value.ok()) return Fail(value.status());
    values_.push_back(value.value());
    for (const TokenLogProbability& token : likeliest_) {
      values_.push_back(token.id);
      values_.push_back(token.value);
    }
    ++unscored_;
  }
  return PrefillOrDone();
}

}  // namespace kvasm
