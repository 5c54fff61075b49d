#include "cache/block_pool.h"

#include <cassert>
#include <cstring>

namespace kvasm {

StatusOr<BlockPool> BlockPool::Create(const KvGeometry& geometry, size_t blocks) {
  BlockPool pool;
  pool.geometry_ = geometry;
  KVASM_RETURN_IF_ERROR(Allocate(SaturatedProduct(blocks, geometry.BlockBytes()),
                                 "the key/value cache", &pool.memory_));
  pool.refs_.resize(blocks);
  pool.free_.reserve(blocks);
  for (size_t b = blocks; b-- > 0;) pool.free_.push_back(static_cast<BlockId>(b));
  return pool;
}

bool BlockPool::EnsureFree(size_t count) {
  while (free_.size() < count) {
    if (reclaimer_ == nullptr || !reclaimer_->ReclaimBlock()) return false;
  }
  return true;
}

BlockId BlockPool::Take() {
  assert(!free_.empty());
  const BlockId block = free_.back();
  free_.pop_back();
  refs_[static_cast<size_t>(block)] = 1;
  return block;
}

void BlockPool::Release(BlockId block) {
  assert(refs(block) > 0);
  if (--refs_[static_cast<size_t>(block)] == 0) free_.push_back(block);
}

void BlockPool::CopyBlock(BlockId from, BlockId to) {
  std::memcpy(Data(to), Data(from), geometry_.BlockBytes());
  ++copies_;
}

}  // namespace kvasm
