// A Sequence as a JavaScript object. bindings/ts/wasm-module.ts says what its members
// mean.

#ifndef KVASM_BINDINGS_JS_SEQUENCE_H_
#define KVASM_BINDINGS_JS_SEQUENCE_H_

#include <emscripten/val.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "base/status.h"
#include "bindings/js_values.h"
#include "engine/sequence.h"

namespace kvasm {

struct JsSequenceOptions {
  int output;
  int cache;
  double temperature;
  double top_k;
  double top_p;
  double min_p;
  double repetition_penalty;
  double frequency_penalty;
  double presence_penalty;
  // [id, bias] for each.
  emscripten::val logit_bias;
  uint32_t seed_low;
  uint32_t seed_high;
  double vocab_limit;
  bool shift;
  double n_keep;
  bool reuse_prefix;
  double prompt_logprobs;
};

SequenceOptions FromJs(const JsSequenceOptions& options);

class JsSequence {
 public:
  explicit JsSequence(StatusOr<std::unique_ptr<Sequence>> sequence);

  JsStatus status() const { return ToJs(sequence_ ? sequence_->status() : status_); }
  uint32_t id() const { return sequence_->id(); }
  void SetPaused(bool paused) { sequence_->set_paused(paused); }
  double Remaining() const;
  double Computed() const { return ToJs(sequence_->computed()); }
  double Reused() const { return ToJs(sequence_->reused()); }
  emscripten::val Ids() const;
  emscripten::val Logits() const { return LogitsAt(0); }
  emscripten::val LogitsAt(double i) const;
  double LogitsCount() const { return ToJs(sequence_->logits_count()); }
  emscripten::val Values() const;
  // [log-probability of the last token drawn,
  //  for each of the `count` likeliest: id, log-probability].
  emscripten::val LogProbabilities(double count);
  JsStatus Append(const emscripten::val& ids, const JsSequenceOptions& options);
  JsStatus Truncate(double size);
  JsSequence* Fork() const { return new JsSequence(sequence_->Fork()); }
  JsSequence* ForkAndRedraw(const JsSequenceOptions& options) const {
    return new JsSequence(sequence_->ForkAndRedraw(FromJs(options)));
  }
  JsStatus Save();
  emscripten::val TakeSaved();

 private:
  std::unique_ptr<Sequence> sequence_;
  Status status_;
  std::vector<uint8_t> saved_;
  std::vector<TokenLogProbability> likeliest_;
  std::vector<double> numbers_;  // Behind the views that are handed out.
};

}  // namespace kvasm

#endif  // KVASM_BINDINGS_JS_SEQUENCE_H_
