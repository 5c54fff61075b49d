// Finds the longest prefix of a prompt whose keys and values are already computed.

#ifndef KVASM_CACHE_PREFIX_TREE_H_
#define KVASM_CACHE_PREFIX_TREE_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "cache/block_pool.h"
#include "cache/kv_cache.h"

namespace kvasm {

struct PrefixTreeStats {
  uint64_t lookups = 0;
  uint64_t hits = 0;  // Lookups that reused at least one token.
  uint64_t tokens_reused = 0;
  uint64_t evictions = 0;  // Blocks given up.
  size_t blocks = 0;       // In the tree now.
};

// A radix tree over token ids in steps of one block (after the RadixAttention of Zheng
// et al. 2024). A node is a block of up to 16 ids and holds a reference to that block;
// only leaves are partly filled. Ids themselves are compared, no hashes, so no
// collision can serve another prompt's keys. Keys depend on all that stands before
// them, so a path always starts at position 0 (T5).
//
// A tree serves one pool, and so one model, window and dtype. Its nodes are stored by
// block: nothing is allocated after construction.
class PrefixTree : public BlockReclaimer {
 public:
  // `pool` must outlive the tree.
  explicit PrefixTree(BlockPool* pool);
  ~PrefixTree() override;
  PrefixTree(const PrefixTree&) = delete;
  PrefixTree& operator=(const PrefixTree&) = delete;

  // Starts `cache`, which is empty, with the longest known prefix of `ids`, at most
  // ids.size() - 1 tokens: the last must be computed, for its logits (T14). A partly
  // matching block is copied, since the next token will be written there; a cache with
  // a window takes whole blocks only. Returns the tokens reused. CountLookup says that
  // they were in fact used.
  size_t Match(std::span<const int32_t> ids, KvCache* cache);
  void CountLookup(size_t reused);

  // Makes the full blocks of `cache` known, which holds `ids` from position 0 on (and
  // perhaps more tokens, which are ignored). With `with_last`, its partly filled last
  // block, too, unless it has a window; then the cache must not be extended any more.
  void Insert(std::span<const int32_t> ids, const KvCache& cache, bool with_last);

  // Gives up the least recently used leaf that nobody else holds. Where every such
  // block has blocks in use below it (a window drops a sequence's first blocks, and
  // keeps the later ones), the least recently used one, and with it the path below,
  // which goes on in use, but unknown to the tree.
  bool ReclaimBlock() override;
  void ForgetBlock(BlockId block) override;

  // Gives up every block that nobody else holds.
  void Clear() {
    while (ReclaimBlock()) continue;
  }

  const PrefixTreeStats& stats() const { return stats_; }

  // Whether the tree holds the block, how many of its tokens the tree knows (0 where it
  // does not hold it), and the logical time of its last use.
  bool Holds(BlockId block) const { return node(block).size > 0; }
  size_t tokens(BlockId block) const { return node(block).size; }
  uint64_t last_use(BlockId block) const { return node(block).last_use; }

 private:
  struct Node {
    BlockId parent = kNoBlock;
    BlockId first_child = kNoBlock;
    BlockId next_sibling = kNoBlock;
    size_t size = 0;  // Ids; 0: not in the tree.
    uint64_t last_use = 0;
    int32_t ids[kBlockTokens];
  };

  Node& node(BlockId block) { return nodes_[static_cast<size_t>(block)]; }
  const Node& node(BlockId block) const { return nodes_[static_cast<size_t>(block)]; }
  BlockId* FirstChildOf(BlockId parent) {
    return parent == kNoBlock ? &first_root_ : &node(parent).first_child;
  }

  // The child that shares the most ids with `ids`, and how many.
  BlockId BestChild(BlockId parent, std::span<const int32_t> ids, size_t* shared);
  void Link(BlockId parent, std::span<const int32_t> ids, BlockId block);
  // Precondition: a leaf.
  void Unlink(BlockId block);
  void UnlinkBelow(BlockId block);
  // Unlinks leaves below `parent` that hold nothing but a proper prefix of `ids`.
  void RemoveShorter(BlockId parent, std::span<const int32_t> ids);

  BlockPool* pool_;
  std::vector<Node> nodes_;  // By block.
  BlockId first_root_ = kNoBlock;
  uint64_t clock_ = 0;
  PrefixTreeStats stats_;
};

}  // namespace kvasm

#endif  // KVASM_CACHE_PREFIX_TREE_H_
