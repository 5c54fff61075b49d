// The keys and values of one sequence.

#ifndef KVASM_CACHE_KV_CACHE_H_
#define KVASM_CACHE_KV_CACHE_H_

#include <cstddef>
#include <vector>

#include "base/status.h"
#include "cache/block_pool.h"

namespace kvasm {

// A table of blocks from a pool. Nothing is allocated after construction, and no key
// ever moves.
class KvCache {
 public:
  // Room for `max_tokens` in the table; `pool` must outlive the cache.
  KvCache(BlockPool* pool, size_t max_tokens);
  ~KvCache() { Clear(); }
  KvCache(const KvCache&) = delete;
  KvCache& operator=(const KvCache&) = delete;

  const KvGeometry& geometry() const { return pool_->geometry(); }

  // Tokens whose keys and values are stored, or are about to be by the forward pass
  // under way.
  size_t tokens() const { return tokens_; }

  // Makes room for `count` more tokens, whose keys and values the caller then stores.
  // All or nothing: kContextFull past max_tokens, kOutOfMemory when the pool has no
  // block left.
  Status Extend(size_t count);

  // Forgets all tokens from position `tokens` on.
  void Truncate(size_t tokens);
  void Clear() { Truncate(0); }

  // One token's keys and values for a layer, each [n_kv_head * head_dim]; position <
  // tokens().
  void Store(size_t layer, size_t position, const float* keys, const float* values);

  // Block b holds positions 16b .. 16b+15.
  const float* const* blocks() const { return blocks_.data(); }

  // Makes this cache, which is empty, a copy of `other`, in blocks of its own. Copies
  // every byte: the textbook's concatenation is built on it, nothing else should be.
  Status CopyFrom(const KvCache& other);

 private:
  BlockPool* pool_;
  size_t max_tokens_;
  size_t tokens_ = 0;
  std::vector<float*> blocks_;  // Its capacity is that of max_tokens from the start.
};

}  // namespace kvasm

#endif  // KVASM_CACHE_KV_CACHE_H_
