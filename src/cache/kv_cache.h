// The keys and values of one sequence.

#ifndef KVASM_CACHE_KV_CACHE_H_
#define KVASM_CACHE_KV_CACHE_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/status.h"
#include "cache/block_pool.h"
#include "kernels/attention.h"

namespace kvasm {

// A table of blocks from a pool, by position / 16. Blocks may be shared with other
// sequences: a full block is never written again, and a partly filled one is copied
// before it is. With a window W, the query at position i sees positions i-W+1 .. i, and
// blocks that have left the window of every query to come are dropped off the front.
// Nothing is allocated after construction, and no key ever moves.
class KvCache {
 public:
  // Room for `max_tokens` positions in the table; window 0 is none. `pool` must outlive
  // the cache.
  KvCache(BlockPool* pool, size_t max_tokens, size_t window = 0);
  ~KvCache() { Clear(); }
  KvCache(const KvCache&) = delete;
  KvCache& operator=(const KvCache&) = delete;

  const KvGeometry& geometry() const { return pool_->geometry(); }
  size_t window() const { return window_; }
  size_t max_tokens() const { return max_tokens_; }

  // Positions so far: the next token's position. Some may have been dropped.
  size_t tokens() const { return tokens_; }
  // The first position that is still held.
  size_t first_token() const { return first_block_ * kBlockTokens; }
  // Positions that are held.
  size_t held_tokens() const { return tokens_ - first_token(); }

  // What the query at `position` sees.
  KeyRange Visible(size_t position) const {
    const size_t begin =
        window_ != 0 && position >= window_ ? position - window_ + 1 : 0;
    return {begin, position + 1};
  }

  // Makes room for `count` more tokens, whose keys and values the caller then stores. A
  // partly filled last block that is shared is copied. All or nothing: kContextFull
  // past max_tokens, kOutOfMemory when the pool has too few blocks.
  Status Extend(size_t count);

  // Drops the blocks that no query to come can see. Call it after a chunk has attended:
  // its first query still saw what the last one does not (T3).
  void Slide();

  // Frees `count` blocks in the pool, without taking them; kOutOfMemory when that many
  // cannot be had.
  Status EnsureRoom(size_t count);

  // Forgets all tokens from position `tokens` on. kInvalidArgument where the window has
  // dropped what the next query there would see, which cannot be brought back (T6);
  // nothing changes then.
  Status Truncate(size_t tokens);
  void Clear();

  // Makes this cache, which is empty, hold the same tokens as `other`, by sharing its
  // blocks.
  void ForkFrom(const KvCache& other);

  // Goes on, behind whole blocks, with a full block of another sequence, by sharing it.
  void AdoptBlock(BlockId block);

  // Goes on, behind whole blocks, with a copy of the first `tokens` of `block`. False,
  // and nothing happens, when the pool has no block for the copy.
  bool AdoptCopy(BlockId block, size_t tokens);

  // Makes this cache, which is empty, a copy of `other` in blocks of its own. Copies
  // every byte: the textbook's concatenation is built on it, nothing else should be.
  Status CopyFrom(const KvCache& other);

  // Makes this cache, which is empty, hold `tokens` positions, without the blocks
  // before `first_block`, and fills the others from `bytes`. kOutOfMemory when the pool
  // has too few blocks.
  Status Load(size_t tokens, size_t first_block, const uint8_t* bytes);

  // One token's keys and values for a layer, each [n_kv_head * head_dim]; position <
  // tokens().
  void Store(size_t layer, size_t position, const float* keys, const float* values);

  // A head's keys and values, for the attention kernels.
  KvHead Keys(size_t layer, size_t head) const {
    return {geometry().dtype, geometry().head_dim, data_.data(),
            geometry().KeyOffset(layer, head)};
  }
  KvHead Values(size_t layer, size_t head) const {
    return {geometry().dtype, geometry().head_dim, data_.data(),
            geometry().ValueOffset(layer, head)};
  }

  // The table: kNoBlock for blocks that were dropped.
  size_t table_size() const { return table_.size(); }
  BlockId block(size_t index) const { return table_[index]; }

  // Blocks that Extend(count) would take from the pool.
  size_t BlocksNeeded(size_t count) const;

 private:
  bool LastBlockIsSharedAndPartlyFilled() const;
  void PushBlock(BlockId block);

  BlockPool* pool_;
  size_t max_tokens_;
  size_t window_;
  size_t tokens_ = 0;
  size_t first_block_ = 0;  // Blocks before it were dropped.
  // By position / 16. Their capacity is that of max_tokens from the start.
  std::vector<BlockId> table_;
  std::vector<const uint8_t*> data_;
};

}  // namespace kvasm

#endif  // KVASM_CACHE_KV_CACHE_H_
