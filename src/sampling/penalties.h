// What the ids that are there already, and the caller, have to say about logits.

#ifndef KVASM_SAMPLING_PENALTIES_H_
#define KVASM_SAMPLING_PENALTIES_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/status.h"

namespace kvasm {

struct LogitBias {
  int32_t id;
  float value;  // Finite, or minus infinity, which rules the id out.
};

struct PenaltyOptions {
  // Logits of ids in the prompt or the output: positive ones are divided by it,
  // negative ones multiplied, once however often the id is there (CTRL, Keskar et al.
  // 2019, as in Hugging Face transformers). 1 is off.
  float repetition = 1.0f;
  // Taken from the logits of ids in the output, as OpenAI's API defines them:
  // `frequency` as often as the id is there, `presence` once. 0 is off.
  float frequency = 0.0f;
  float presence = 0.0f;
  // Added to the logits last.
  std::vector<LogitBias> logit_bias;
};

// Counts ids, and changes logits by the counts. Allocates in the constructor only, and
// nothing where all options are off.
class Penalties {
 public:
  Penalties(const PenaltyOptions& options, size_t vocab_size);

  // kInvalidArgument, naming the option.
  static Status Validate(const PenaltyOptions& options);

  // Whether Apply changes anything, ever.
  bool active() const { return counts_ids_ || !options_.logit_bias.empty(); }

  void Add(int32_t id, bool is_output);
  // Takes back one Add.
  void Remove(int32_t id, bool is_output);

  // logits: [vocab_size], finite or minus infinity, and so afterwards. In the order of
  // PenaltyOptions. Takes time for each id that was added and each bias, not for the
  // vocabulary.
  void Apply(float* logits) const;

 private:
  struct Count {
    uint32_t all;
    uint32_t output;
  };

  PenaltyOptions options_;  // Of logit_bias, what is in the vocabulary.
  bool counts_ids_;
  std::vector<Count> counts_;  // By id.
  std::vector<int32_t> seen_;  // Each id whose count has ever been above 0, once.
  std::vector<uint8_t> is_seen_;
};

}  // namespace kvasm

#endif  // KVASM_SAMPLING_PENALTIES_H_
