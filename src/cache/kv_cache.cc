#include "cache/kv_cache.h"

#include <cassert>
#include <cstring>
#include <string>

namespace kvasm {

KvCache::KvCache(BlockPool* pool, size_t max_tokens, size_t window)
    : pool_(pool), max_tokens_(max_tokens), window_(window) {
  table_.reserve(BlocksFor(max_tokens));
  data_.reserve(BlocksFor(max_tokens));
}

bool KvCache::LastBlockIsSharedAndPartlyFilled() const {
  return tokens_ % kBlockTokens != 0 && pool_->refs(table_.back()) > 1;
}

void KvCache::PushBlock(BlockId block) {
  table_.push_back(block);
  data_.push_back(pool_->Data(block));
}

size_t KvCache::BlocksNeeded(size_t count) const {
  if (count == 0) return 0;
  return BlocksFor(tokens_ + count) - table_.size() +
         (LastBlockIsSharedAndPartlyFilled() ? 1 : 0);
}

Status KvCache::EnsureRoom(size_t count) {
  if (pool_->EnsureFree(count)) return OkStatus();
  return Status(StatusCode::kOutOfMemory,
                "the key/value cache is full: " + std::to_string(count) +
                    " more blocks are needed, " + std::to_string(pool_->free_blocks()) +
                    " of " + std::to_string(pool_->blocks()) +
                    " are free; load the engine with more kvBytes");
}

Status KvCache::Extend(size_t count) {
  if (count > max_tokens_ - tokens_) {
    return Status(StatusCode::kContextFull,
                  "the context has room for " + std::to_string(max_tokens_) +
                      " tokens, not " + std::to_string(tokens_ + count));
  }
  if (!pool_->EnsureFree(BlocksNeeded(count)) && LastBlockIsSharedAndPartlyFilled()) {
    // Better forgotten by the prefix tree than copied.
    pool_->Forget(table_.back());
  }
  KVASM_RETURN_IF_ERROR(EnsureRoom(BlocksNeeded(count)));
  if (count > 0 && LastBlockIsSharedAndPartlyFilled()) {
    const BlockId copy = pool_->Take();
    pool_->CopyBlock(table_.back(), copy);
    pool_->Release(table_.back());
    table_.back() = copy;
    data_.back() = pool_->Data(copy);
  }
  while (table_.size() < BlocksFor(tokens_ + count)) PushBlock(pool_->Take());
  tokens_ += count;
  return OkStatus();
}

void KvCache::Slide() {
  const size_t keep = Visible(tokens_).begin / kBlockTokens;
  for (; first_block_ < keep; ++first_block_) {
    pool_->Release(table_[first_block_]);
    table_[first_block_] = kNoBlock;
    data_[first_block_] = nullptr;
  }
}

Status KvCache::Truncate(size_t tokens) {
  assert(tokens <= tokens_);
  if (Visible(tokens).begin < first_token()) {
    return Status(StatusCode::kInvalidArgument,
                  "cannot roll back to " + std::to_string(tokens) +
                      " tokens: the window has dropped the tokens before position " +
                      std::to_string(first_token()));
  }
  while (table_.size() > BlocksFor(tokens) && table_.size() > first_block_) {
    pool_->Release(table_.back());
    table_.pop_back();
    data_.pop_back();
  }
  tokens_ = tokens;
  return OkStatus();
}

void KvCache::Clear() {
  for (size_t b = first_block_; b < table_.size(); ++b) pool_->Release(table_[b]);
  table_.clear();
  data_.clear();
  first_block_ = 0;
  tokens_ = 0;
}

void KvCache::ForkFrom(const KvCache& other) {
  assert(tokens_ == 0 && pool_ == other.pool_ && window_ == other.window_ &&
         max_tokens_ == other.max_tokens_);
  for (size_t b = 0; b < other.table_.size(); ++b) {
    if (other.table_[b] != kNoBlock) pool_->Retain(other.table_[b]);
    table_.push_back(other.table_[b]);
    data_.push_back(other.data_[b]);
  }
  first_block_ = other.first_block_;
  tokens_ = other.tokens_;
}

void KvCache::AdoptBlock(BlockId block) {
  assert(tokens_ % kBlockTokens == 0);
  pool_->Retain(block);
  PushBlock(block);
  tokens_ += kBlockTokens;
}

bool KvCache::AdoptCopy(BlockId block, size_t tokens) {
  assert(tokens_ % kBlockTokens == 0 && tokens <= kBlockTokens);
  // Held while room is made for its copy.
  pool_->Retain(block);
  const bool has_room = pool_->EnsureFree(1);
  if (has_room) {
    const BlockId copy = pool_->Take();
    pool_->CopyBlock(block, copy);
    PushBlock(copy);
    tokens_ += tokens;
  }
  pool_->Release(block);
  return has_room;
}

Status KvCache::CopyFrom(const KvCache& other) {
  assert(tokens_ == 0 && other.first_block_ == 0);
  KVASM_RETURN_IF_ERROR(Extend(other.tokens_));
  for (size_t b = 0; b < table_.size(); ++b) {
    std::memcpy(pool_->Data(table_[b]), other.data_[b], geometry().BlockBytes());
  }
  return OkStatus();
}

Status KvCache::Load(size_t tokens, size_t first_block, const uint8_t* bytes) {
  assert(tokens_ == 0 && tokens <= max_tokens_);
  const size_t needed = BlocksFor(tokens) - first_block;
  KVASM_RETURN_IF_ERROR(EnsureRoom(needed));
  for (size_t b = 0; b < first_block; ++b) {
    table_.push_back(kNoBlock);
    data_.push_back(nullptr);
  }
  for (size_t b = 0; b < needed; ++b) {
    PushBlock(pool_->Take());
    std::memcpy(pool_->Data(table_.back()), bytes + b * geometry().BlockBytes(),
                geometry().BlockBytes());
  }
  first_block_ = first_block;
  tokens_ = tokens;
  return OkStatus();
}

void KvCache::Store(size_t layer, size_t position, const float* keys,
                    const float* values) {
  assert(position < tokens_);
  const KvGeometry& g = geometry();
  uint8_t* block = pool_->Data(table_[position / kBlockTokens]);
  const size_t slot = position % kBlockTokens;
  for (size_t head = 0; head < g.n_kv_head; ++head) {
    StoreKey(g.dtype, keys + head * g.head_dim, g.head_dim, slot,
             block + g.KeyOffset(layer, head));
    StoreValue(g.dtype, values + head * g.head_dim, g.head_dim, slot,
               block + g.ValueOffset(layer, head));
  }
}

}  // namespace kvasm
