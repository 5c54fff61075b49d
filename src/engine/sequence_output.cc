// What a sequence takes from a forward pass.

#include <cmath>
#include <limits>
#include <string>

#include "engine/sequence.h"

namespace kvasm {

bool Sequence::NeedsLogits(size_t position) const {
  const bool is_last = position + 1 == ids_.size();
  switch (output_) {
    case Output::kTokens:
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
         output_ == Output::kMeanHidden;
}

void Sequence::ClearValues() {
  values_.clear();
  if (output_ == Output::kLogProbabilities) values_.reserve(ids_.size());
  if (output_ == Output::kLastHidden || output_ == Output::kMeanHidden) {
    values_.resize(engine_->config().n_embd);
  }
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
      return logits_count > 0 ? Draw(logits_row) : PrefillOrDone();
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

StepEvent Sequence::TakeLogProbabilities(size_t rows, size_t logits_row,
                                         size_t logits_count) {
  const size_t drawable = sampler_->vocab_size();
  for (size_t i = 0; i < logits_count; ++i) {
    const size_t position = computed_ - rows + i + 1;
    const size_t id = static_cast<size_t>(ids_[position]);
    const float value =
        kvasm::LogProbabilities(engine_->model_.logits(logits_row + i), drawable,
                                id < drawable ? ids_[position] : 0, {});
    if (std::isnan(value)) {
      return Fail(Status(StatusCode::kNonFinite,
                         "the logits before token " + std::to_string(position) +
                             " are no numbers; the model's weights are damaged, or "
                             "overflow in this precision"));
    }
    values_.push_back(id < drawable ? value : -std::numeric_limits<double>::infinity());
  }
  return PrefillOrDone();
}

}  // namespace kvasm
