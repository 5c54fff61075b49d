// One generation: a prompt, and the tokens drawn after it.

#ifndef KVASM_ENGINE_SEQUENCE_H_
#define KVASM_ENGINE_SEQUENCE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/status.h"
#include "cache/kv_cache.h"
#include "engine/engine.h"
#include "sampling/sampler.h"

namespace kvasm {

class Sequence {
 public:
  enum class StepKind { kPrefill, kToken };
  struct StepResult {
    StepKind kind;
    int32_t token;  // For kToken.
  };

  // Computes one chunk of the prompt (kPrefill while some of it is left), or feeds the
  // last token drawn; with the logits at hand, draws the next (kToken). kContextFull
  // when remaining() is 0. After any other error the sequence is spent, and every
  // further step returns that error.
  StatusOr<StepResult> Step();

  // Tokens that may still be drawn. The last one drawn needs no position of its own,
  // since nothing is computed from it: context_length + 1 - prompt - drawn.
  size_t remaining() const;

  // Tokens of the prompt that are computed.
  size_t prefilled() const;

  // The prompt and the tokens drawn.
  std::span<const int32_t> ids() const { return ids_; }

  // [vocab_size]: what the last token was drawn from. Valid until the engine computes
  // again.
  const float* logits() const { return engine_->model().logits(0); }

  size_t logits_size() const { return engine_->config().vocab_size; }

  // Tokens in the cache, 0 for CacheStrategy::kNone.
  size_t cached_tokens() const;

  // Bytes of cache memory outside the engine's pool, for CacheStrategy::kConcat.
  size_t own_cache_bytes() const;

 private:
  friend class Engine;

  // A cache with memory of its own.
  struct OwnCache {
    OwnCache(BlockPool pool_in, size_t max_tokens)
        : pool(std::move(pool_in)), cache(&pool, max_tokens) {}
    BlockPool pool;
    KvCache cache;
  };

  Sequence(Engine* engine, std::span<const int32_t> prompt,
           const SequenceOptions& options);

  StatusOr<StepResult> StepUnchecked();
  // Computes ids_[computed_ .. computed_ + count), the logits of the last of them if
  // `want_logits`.
  Status Compute(size_t count, bool want_logits);
  // CacheStrategy::kConcat: replaces the cache by one with room for exactly `tokens`.
  Status Reallocate(size_t tokens);

  Engine* engine_;
  CacheStrategy strategy_;
  size_t prompt_size_;
  std::vector<int32_t>
      ids_;              // Its capacity is that of the whole context from the start.
  size_t computed_ = 0;  // Tokens whose keys and values have been computed.
  KvCache cache_;        // In the engine's pool; scratch for kNone, unused for kConcat.
  std::unique_ptr<OwnCache> own_;
  std::vector<BatchRow> rows_;
  Sampler sampler_;
  Status failure_;
};

}  // namespace kvasm

#endif  // KVASM_ENGINE_SEQUENCE_H_
