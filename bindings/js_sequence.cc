#include "bindings/js_sequence.h"

#include <emscripten/bind.h>

#include <cstddef>
#include <limits>
#include <optional>
#include <utility>

namespace kvasm {

using emscripten::val;

namespace {

std::vector<LogitBias> BiasFromJs(const val& pairs) {
  const std::vector<double> numbers =
      emscripten::convertJSArrayToNumberVector<double>(pairs);
  std::vector<LogitBias> biases;
  for (size_t i = 0; i + 1 < numbers.size(); i += 2) {
    biases.push_back(
        {static_cast<int32_t>(numbers[i]), static_cast<float>(numbers[i + 1])});
  }
  return biases;
}

}  // namespace

SequenceOptions FromJs(const JsSequenceOptions& options) {
  return {
      .output = static_cast<Output>(options.output),
      .cache = static_cast<CacheStrategy>(options.cache),
      .sampler =
          {.temperature = static_cast<float>(options.temperature),
           .top_k = static_cast<size_t>(options.top_k),
           .top_p = static_cast<float>(options.top_p),
           .min_p = static_cast<float>(options.min_p),
           .seed = static_cast<uint64_t>(options.seed_high) << 32 | options.seed_low,
           .penalties = {.repetition = static_cast<float>(options.repetition_penalty),
                         .frequency = static_cast<float>(options.frequency_penalty),
                         .presence = static_cast<float>(options.presence_penalty),
                         .logit_bias = BiasFromJs(options.logit_bias)}},
      .vocab_limit = static_cast<size_t>(options.vocab_limit),
      .overflow = options.shift ? Overflow::kShift : Overflow::kStop,
      .n_keep = static_cast<size_t>(options.n_keep),
      .reuse_prefix = options.reuse_prefix,
      .prompt_log_probabilities =
          options.prompt_logprobs < 0
              ? std::nullopt
              : std::optional(static_cast<size_t>(options.prompt_logprobs))};
}

JsSequence::JsSequence(StatusOr<std::unique_ptr<Sequence>> sequence)
    : status_(sequence.status()) {
  if (sequence.ok()) sequence_ = std::move(*sequence);
}

double JsSequence::Remaining() const {
  const size_t remaining = sequence_->remaining();
  return remaining == std::numeric_limits<size_t>::max()
             ? std::numeric_limits<double>::infinity()
             : ToJs(remaining);
}

val JsSequence::Ids() const {
  return val(
      emscripten::typed_memory_view(sequence_->ids().size(), sequence_->ids().data()));
}

val JsSequence::LogitsAt(double i) const {
  const float* logits = sequence_->logits(static_cast<size_t>(i));
  if (logits == nullptr) return val::null();
  return val(
      emscripten::typed_memory_view(sequence_->engine()->config().vocab_size, logits));
}

val JsSequence::Values() const {
  return val(emscripten::typed_memory_view(sequence_->values().size(),
                                           sequence_->values().data()));
}

val JsSequence::LogProbabilities(double count) {
  likeliest_.resize(static_cast<size_t>(count));
  numbers_.clear();
  numbers_.push_back(sequence_->LogProbabilities(likeliest_));
  for (const TokenLogProbability& token : likeliest_) {
    numbers_.push_back(token.id);
    numbers_.push_back(token.value);
  }
  return View(numbers_);
}

JsStatus JsSequence::Append(const val& ids, const JsSequenceOptions& options) {
  return ToJs(sequence_->Append(emscripten::convertJSArrayToNumberVector<int32_t>(ids),
                                FromJs(options)));
}

JsStatus JsSequence::Truncate(double size) {
  return ToJs(sequence_->Truncate(static_cast<size_t>(size)));
}

JsStatus JsSequence::Save() {
  StatusOr<std::vector<uint8_t>> saved = sequence_->Save();
  if (saved.ok()) saved_ = std::move(*saved);
  return ToJs(saved.status());
}

val JsSequence::TakeSaved() {
  const val copy = val::global("Uint8Array").new_(View(saved_));
  saved_ = {};
  return copy;
}

EMSCRIPTEN_BINDINGS(kvasm_sequence) {
  using emscripten::allow_raw_pointers;
  emscripten::value_object<JsStatus>("Status")
      .field("code", &JsStatus::code)
      .field("message", &JsStatus::message);
  emscripten::value_object<JsSequenceOptions>("SequenceOptions")
      .field("output", &JsSequenceOptions::output)
      .field("cache", &JsSequenceOptions::cache)
      .field("temperature", &JsSequenceOptions::temperature)
      .field("topK", &JsSequenceOptions::top_k)
      .field("topP", &JsSequenceOptions::top_p)
      .field("minP", &JsSequenceOptions::min_p)
      .field("repetitionPenalty", &JsSequenceOptions::repetition_penalty)
      .field("frequencyPenalty", &JsSequenceOptions::frequency_penalty)
      .field("presencePenalty", &JsSequenceOptions::presence_penalty)
      .field("logitBias", &JsSequenceOptions::logit_bias)
      .field("seedLow", &JsSequenceOptions::seed_low)
      .field("seedHigh", &JsSequenceOptions::seed_high)
      .field("vocabLimit", &JsSequenceOptions::vocab_limit)
      .field("shift", &JsSequenceOptions::shift)
      .field("nKeep", &JsSequenceOptions::n_keep)
      .field("reusePrefix", &JsSequenceOptions::reuse_prefix)
      .field("promptLogprobs", &JsSequenceOptions::prompt_logprobs);
  emscripten::class_<JsSequence>("Sequence")
      .function("status", &JsSequence::status)
      .function("id", &JsSequence::id)
      .function("setPaused", &JsSequence::SetPaused)
      .function("remaining", &JsSequence::Remaining)
      .function("computed", &JsSequence::Computed)
      .function("reused", &JsSequence::Reused)
      .function("ids", &JsSequence::Ids)
      .function("logits", &JsSequence::Logits)
      .function("logitsAt", &JsSequence::LogitsAt)
      .function("logitsCount", &JsSequence::LogitsCount)
      .function("values", &JsSequence::Values)
      .function("logProbabilities", &JsSequence::LogProbabilities)
      .function("append", &JsSequence::Append)
      .function("truncate", &JsSequence::Truncate)
      .function("fork", &JsSequence::Fork, allow_raw_pointers())
      .function("forkAndRedraw", &JsSequence::ForkAndRedraw, allow_raw_pointers())
      .function("save", &JsSequence::Save)
      .function("takeSaved", &JsSequence::TakeSaved);
}

}  // namespace kvasm
