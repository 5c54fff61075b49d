#include "cache/kv_cache.h"

#include <cassert>
#include <cstring>
#include <string>

namespace kvasm {
namespace {

size_t BlocksFor(size_t tokens) { return (tokens + kBlockTokens - 1) / kBlockTokens; }

}  // namespace

KvCache::KvCache(BlockPool* pool, size_t max_tokens)
    : pool_(pool), max_tokens_(max_tokens) {
  blocks_.reserve(BlocksFor(max_tokens));
}

Status KvCache::Extend(size_t count) {
  if (count > max_tokens_ - tokens_) {
    return Status(StatusCode::kContextFull,
                  "the cache has room for " + std::to_string(max_tokens_) +
                      " tokens, not " + std::to_string(tokens_ + count));
  }
  const size_t needed = BlocksFor(tokens_ + count) - blocks_.size();
  if (needed > pool_->free_blocks()) {
    return Status(StatusCode::kOutOfMemory,
                  "the key/value cache is full: " + std::to_string(needed) +
                      " more blocks are needed, " +
                      std::to_string(pool_->free_blocks()) + " are free");
  }
  for (size_t i = 0; i < needed; ++i) blocks_.push_back(pool_->Take());
  tokens_ += count;
  return OkStatus();
}

void KvCache::Truncate(size_t tokens) {
  assert(tokens <= tokens_);
  while (blocks_.size() > BlocksFor(tokens)) {
    pool_->Return(blocks_.back());
    blocks_.pop_back();
  }
  tokens_ = tokens;
}

void KvCache::Store(size_t layer, size_t position, const float* keys,
                    const float* values) {
  assert(position < tokens_);
  const KvGeometry& g = pool_->geometry();
  float* block = blocks_[position / kBlockTokens];
  const size_t slot = position % kBlockTokens;
  for (size_t head = 0; head < g.n_kv_head; ++head) {
    float* k = block + g.KeyOffset(layer, head) + slot;
    const float* source = keys + head * g.head_dim;
    for (size_t d = 0; d < g.head_dim; ++d) k[d * kBlockTokens] = source[d];
    std::memcpy(block + g.ValueOffset(layer, head) + slot * g.head_dim,
                values + head * g.head_dim, g.head_dim * sizeof(float));
  }
}

Status KvCache::CopyFrom(const KvCache& other) {
  assert(tokens_ == 0);
  KVASM_RETURN_IF_ERROR(Extend(other.tokens_));
  for (size_t b = 0; b < blocks_.size(); ++b) {
    std::memcpy(blocks_[b], other.blocks_[b], geometry().BlockSize() * sizeof(float));
  }
  return OkStatus();
}

}  // namespace kvasm
