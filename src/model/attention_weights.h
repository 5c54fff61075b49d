// What a model's heads look at, for people to look at in turn: computed by a pass of
// its own, beside whatever an engine computes.

#ifndef KVASM_MODEL_ATTENTION_WEIGHTS_H_
#define KVASM_MODEL_ATTENTION_WEIGHTS_H_

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>

#include "base/aligned_buffer.h"
#include "base/status.h"
#include "kernels/kv_layout.h"
#include "model/gpt2_weights.h"

namespace kvasm {

struct AttentionQuery {
  static constexpr size_t kAllHeads = std::numeric_limits<size_t>::max();

  size_t layer = 0;
  size_t head = kAllHeads;
  size_t window = 0;  // Keys that a token sees, its own included; 0: all.
  KvDtype kv_dtype = KvDtype::kF32;
};

// [heads, n, n] for the n `ids` from position 0 on, heads being 1 or n_head: what the
// query at position i gives to the key at position j. Rows sum to 1; a key that the
// query does not see has 0.
//
// kInvalidArgument for no ids, ids outside the vocabulary, a layer or head that the
// model does not have; kContextFull for more than n_positions; kOutOfMemory.
StatusOr<AlignedBuffer<float>> AttentionWeights(const Gpt2Weights& weights,
                                                std::span<const int32_t> ids,
                                                const AttentionQuery& query);

}  // namespace kvasm

#endif  // KVASM_MODEL_ATTENTION_WEIGHTS_H_
