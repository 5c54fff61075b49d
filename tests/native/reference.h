// What cached computations are compared with.

#ifndef KVASM_TESTS_NATIVE_REFERENCE_H_
#define KVASM_TESTS_NATIVE_REFERENCE_H_

#include <cstring>
#include <functional>
#include <vector>

#include "cache/kv_cache.h"
#include "kernels/kv_layout.h"
#include "model/gpt2.h"
#include "model/gpt2_checkpoint.h"
#include "random_model.h"

namespace kvasm {

using Logits = std::vector<float>;

// A model without an engine.
class ReferenceModel {
 public:
  // With weights of a random dtype.
  explicit ReferenceModel(TestRandom& random);
  ReferenceModel(const Gpt2Config& config, TestRandom& random);
  ReferenceModel(const Gpt2Config& config, const std::vector<uint8_t>& file,
                 WeightDtype dtype = WeightDtype::kF32);

  const Gpt2Weights& weights() { return sink_.weights(); }
  const Gpt2Config& config() { return weights().config; }

 private:
  Gpt2CheckpointSink sink_;
};

// Logits of positions at .. at + count - 1 of `ids`, computed in one pass behind what
// `cache` holds.
std::vector<Logits> ForwardLogits(Gpt2* model, KvCache* cache,
                                  const std::vector<int32_t>& ids, size_t at,
                                  size_t count);

// Logits of each position of `ids`, from one forward pass over all of them at once on
// an empty cache. A window only masks here: nothing is dropped.
std::vector<Logits> UncachedLogits(const Gpt2Weights& weights,
                                   const std::vector<int32_t>& ids, size_t window = 0,
                                   KvDtype dtype = KvDtype::kF32);

// The same in double precision by plain loops over the whole sequence, without a cache,
// under the mask j <= i and i - j < window.
//
// probe: if given, gets what each query gives to the keys 0 .. i of its sequence.
using NaiveAttentionProbe = std::function<void(size_t layer, size_t head, size_t i,
                                               const std::vector<double>&)>;
std::vector<Logits> NaiveLogits(const Gpt2Config& config, const TestTensors& tensors,
                                const std::vector<int32_t>& ids, size_t window,
                                const NaiveAttentionProbe& probe = {});

// What values() must be of a sequence whose prompt are the ids from `begin` on, with
// the log-probabilities of the `likeliest`: by the logits after each of `ids`.
std::vector<double> PromptLogProbabilities(const std::vector<Logits>& logits,
                                           const std::vector<int32_t>& ids,
                                           size_t begin, size_t likeliest);

inline bool SameBits(const float* a, const Logits& b) {
  return std::memcmp(a, b.data(), b.size() * sizeof(float)) == 0;
}

}  // namespace kvasm

#endif  // KVASM_TESTS_NATIVE_REFERENCE_H_
