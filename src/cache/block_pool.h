// The memory of the key/value cache: one allocation, cut into blocks of 16 tokens that
// are shared by reference counts (the paged cache of Kwon et al. 2023).

#ifndef KVASM_CACHE_BLOCK_POOL_H_
#define KVASM_CACHE_BLOCK_POOL_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/aligned_buffer.h"
#include "base/status.h"
#include "kernels/kv_layout.h"

namespace kvasm {

// How a block is laid out: for each layer and key/value head, the keys' area, then the
// values'.
struct KvGeometry {
  size_t n_layer = 0;
  size_t n_kv_head = 0;
  size_t head_dim = 0;
  KvDtype dtype = KvDtype::kF32;

  // All in bytes.
  size_t HeadBytes() const { return KvHeadBytes(dtype, head_dim); }
  size_t KeyOffset(size_t layer, size_t head) const {
    return (layer * n_kv_head + head) * 2 * HeadBytes();
  }
  size_t ValueOffset(size_t layer, size_t head) const {
    return KeyOffset(layer, head) + HeadBytes();
  }
  size_t BlockBytes() const {
    return SaturatedProduct(n_layer * n_kv_head, 2 * HeadBytes());
  }
  size_t BytesPerToken() const {
    return 2 * n_layer * n_kv_head * KvTokenBytes(dtype, head_dim);
  }

  bool operator==(const KvGeometry&) const = default;
};

using BlockId = int32_t;
inline constexpr BlockId kNoBlock = -1;

constexpr size_t BlocksFor(size_t tokens) {
  return (tokens + kBlockTokens - 1) / kBlockTokens;
}

// Whoever keeps blocks that nobody uses just now, and can give them up.
class BlockReclaimer {
 public:
  virtual ~BlockReclaimer() = default;

  // Frees at least one block; false when it has none to give.
  virtual bool ReclaimBlock() = 0;

  // Lets go of a block that others hold, too, if it holds it.
  virtual void ForgetBlock(BlockId block) = 0;
};

class BlockPool {
 public:
  static StatusOr<BlockPool> Create(const KvGeometry& geometry, size_t blocks);

  const KvGeometry& geometry() const { return geometry_; }
  size_t blocks() const { return refs_.size(); }
  size_t free_blocks() const { return free_.size(); }
  size_t reserved_bytes() const { return memory_.bytes(); }

  // Asked for blocks when none is free; may be null, must outlive the pool's use.
  void set_reclaimer(BlockReclaimer* reclaimer) { reclaimer_ = reclaimer; }

  // Makes `count` blocks free, reclaiming as needed; false when that many cannot be
  // had.
  bool EnsureFree(size_t count);

  // Makes the reclaimer let go of a block.
  void Forget(BlockId block) {
    if (reclaimer_) reclaimer_->ForgetBlock(block);
  }

  // A block with one reference, whatever it held before. Precondition: one is free.
  BlockId Take();
  void Retain(BlockId block) { ++refs_[static_cast<size_t>(block)]; }
  // Frees the block with its last reference.
  void Release(BlockId block);

  uint32_t refs(BlockId block) const { return refs_[static_cast<size_t>(block)]; }
  uint8_t* Data(BlockId block) {
    return memory_.data() + static_cast<size_t>(block) * geometry_.BlockBytes();
  }

  // Copies a whole block: the costly part of copy on write.
  void CopyBlock(BlockId from, BlockId to);
  // Blocks copied so far.
  uint64_t copies() const { return copies_; }

 private:
  KvGeometry geometry_;
  AlignedBuffer<uint8_t> memory_;
  std::vector<uint32_t> refs_;  // By block; 0: free.
  std::vector<BlockId> free_;   // Its capacity is that of all blocks from the start.
  BlockReclaimer* reclaimer_ = nullptr;
  uint64_t copies_ = 0;
};

}  // namespace kvasm

#endif  // KVASM_CACHE_BLOCK_POOL_H_
