// The memory of the key/value cache: one allocation, cut into blocks of 16 tokens.

#ifndef KVASM_CACHE_BLOCK_POOL_H_
#define KVASM_CACHE_BLOCK_POOL_H_

#include <cstddef>
#include <vector>

#include "base/aligned_buffer.h"
#include "base/status.h"
#include "kernels/attention.h"

namespace kvasm {

// How a block is laid out: for each layer and key/value head, keys [head_dim, 16], then
// values [16, head_dim].
struct KvGeometry {
  size_t n_layer = 0;
  size_t n_kv_head = 0;
  size_t head_dim = 0;

  // In floats.
  size_t HeadSize() const { return head_dim * kBlockTokens; }
  size_t KeyOffset(size_t layer, size_t head) const {
    return (layer * n_kv_head + head) * 2 * HeadSize();
  }
  size_t ValueOffset(size_t layer, size_t head) const {
    return KeyOffset(layer, head) + HeadSize();
  }
  size_t BlockSize() const { return n_layer * n_kv_head * 2 * HeadSize(); }

  size_t BytesPerToken() const {
    return 2 * n_layer * n_kv_head * head_dim * sizeof(float);
  }
};

class BlockPool {
 public:
  static StatusOr<BlockPool> Create(const KvGeometry& geometry, size_t blocks);

  const KvGeometry& geometry() const { return geometry_; }
  size_t blocks() const { return blocks_; }
  size_t free_blocks() const { return free_.size(); }
  size_t reserved_bytes() const { return memory_.bytes(); }

  // A block's memory, whatever it held before; null when none is free.
  float* Take();
  void Return(float* block);

 private:
  KvGeometry geometry_;
  size_t blocks_ = 0;
  AlignedBuffer<float> memory_;
  std::vector<float*> free_;  // Its capacity is `blocks_` from the start.
};

}  // namespace kvasm

#endif  // KVASM_CACHE_BLOCK_POOL_H_
