// A loaded model, and the memory that generations work in.

#ifndef KVASM_ENGINE_ENGINE_H_
#define KVASM_ENGINE_ENGINE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "base/status.h"
#include "cache/block_pool.h"
#include "model/gpt2.h"
#include "model/gpt2_weights.h"
#include "sampling/sampler.h"

namespace kvasm {

class Sequence;

struct EngineOptions {
  // Tokens to reserve cache memory for; 0: n_positions, which is also the maximum.
  size_t context_length = 0;
  // Rows that one forward pass takes at the most: long prompts are computed in chunks
  // of this.
  size_t prefill_chunk = 64;
};

// How a sequence keeps its keys and values. All three yield the same bits.
enum class CacheStrategy {
  kBlock,   // In the engine's pool, allocated beforehand.
  kConcat,  // The textbook's first cache: reallocated and copied for each token.
  kNone,    // Not at all: everything is computed anew for each token.
};

struct SequenceOptions {
  CacheStrategy cache = CacheStrategy::kBlock;
  SamplerOptions sampler;
  // Only ids below this are drawn; 0: the whole vocabulary.
  size_t vocab_limit = 0;
};

struct MemoryUse {
  size_t weights_bytes;
  size_t activation_bytes;
  size_t kv_reserved_bytes;
  size_t kv_used_bytes;
  size_t kv_bytes_per_token;
  size_t kv_tokens;
};

class Engine {
 public:
  static StatusOr<std::unique_ptr<Engine>> Create(Gpt2Weights weights,
                                                  const EngineOptions& options);
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  const Gpt2Config& config() const { return weights_.config; }
  // Positions that a sequence may use.
  size_t context_length() const { return context_length_; }

  // Starts a generation. One at a time: the sequence must go before the next is
  // started, and before the engine. kInvalidArgument for an empty prompt or ids outside
  // the vocabulary, kContextFull for a prompt longer than the context.
  StatusOr<std::unique_ptr<Sequence>> StartSequence(std::span<const int32_t> prompt,
                                                    const SequenceOptions& options);

  // `active` is the sequence under way, or null.
  MemoryUse Memory(const Sequence* active) const;

  Gpt2& model() { return model_; }
  BlockPool& pool() { return pool_; }

 private:
  Engine(Gpt2Weights weights, size_t context_length)
      : weights_(std::move(weights)), context_length_(context_length) {}

  Gpt2Weights weights_;
  size_t context_length_;
  Gpt2 model_;
  BlockPool pool_;
};

}  // namespace kvasm

#endif  // KVASM_ENGINE_ENGINE_H_
