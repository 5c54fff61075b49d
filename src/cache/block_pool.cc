#include "cache/block_pool.h"

#include <cassert>

namespace kvasm {

StatusOr<BlockPool> BlockPool::Create(const KvGeometry& geometry, size_t blocks) {
  BlockPool pool;
  pool.geometry_ = geometry;
  pool.blocks_ = blocks;
  const size_t block_size = geometry.BlockSize();
  const size_t size = SaturatedProduct(blocks, block_size);
  KVASM_RETURN_IF_ERROR(Allocate(size, "the key/value cache", &pool.memory_));
  pool.free_.reserve(blocks);
  for (size_t b = blocks; b-- > 0;) {
    pool.free_.push_back(pool.memory_.data() + b * block_size);
  }
  return pool;
}

float* BlockPool::Take() {
  if (free_.empty()) return nullptr;
  float* block = free_.back();
  free_.pop_back();
  return block;
}

void BlockPool::Return(float* block) {
  assert(free_.size() < blocks_);
  free_.push_back(block);
}

}  // namespace kvasm
