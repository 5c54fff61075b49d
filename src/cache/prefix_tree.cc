#include "cache/prefix_tree.h"

#include <algorithm>
#include <cassert>

namespace kvasm {
namespace {

size_t SharedPrefix(std::span<const int32_t> a, std::span<const int32_t> b) {
  const size_t n = std::min(a.size(), b.size());
  size_t i = 0;
  while (i < n && a[i] == b[i]) ++i;
  return i;
}

}  // namespace

PrefixTree::PrefixTree(BlockPool* pool) : pool_(pool), nodes_(pool->blocks()) {
  pool->set_reclaimer(this);
}

PrefixTree::~PrefixTree() {
  for (size_t b = 0; b < nodes_.size(); ++b) {
    if (nodes_[b].size > 0) pool_->Release(static_cast<BlockId>(b));
  }
  pool_->set_reclaimer(nullptr);
}

BlockId PrefixTree::BestChild(BlockId parent, std::span<const int32_t> ids,
                              size_t* shared) {
  BlockId best = kNoBlock;
  *shared = 0;
  for (BlockId child = *FirstChildOf(parent); child != kNoBlock;
       child = node(child).next_sibling) {
    const size_t n = SharedPrefix(ids, {node(child).ids, node(child).size});
    if (n > *shared) {
      best = child;
      *shared = n;
    }
  }
  return best;
}

size_t PrefixTree::Match(std::span<const int32_t> ids, KvCache* cache) {
  assert(cache->tokens() == 0);
  ++clock_;
  const std::span<const int32_t> usable = ids.first(ids.empty() ? 0 : ids.size() - 1);
  BlockId parent = kNoBlock;
  size_t matched = 0;
  for (;;) {
    const std::span<const int32_t> rest = usable.subspan(matched);
    size_t shared = 0;
    const BlockId child =
        BestChild(parent, rest.first(std::min(rest.size(), kBlockTokens)), &shared);
    if (child == kNoBlock) break;
    if (shared < kBlockTokens) {
      if (cache->window() == 0 && cache->AdoptCopy(child, shared)) {
        node(child).last_use = clock_;
        matched += shared;
      }
      break;
    }
    node(child).last_use = clock_;
    cache->AdoptBlock(child);
    // What has left the window is let go of at once, or a long prefix could pin the
    // whole pool.
    cache->Slide();
    matched += kBlockTokens;
    parent = child;
  }
  return matched;
}

void PrefixTree::CountLookup(size_t reused) {
  ++stats_.lookups;
  if (reused > 0) ++stats_.hits;
  stats_.tokens_reused += reused;
}

void PrefixTree::Insert(std::span<const int32_t> ids, const KvCache& cache,
                        bool with_last) {
  ++clock_;
  const size_t tokens = std::min(ids.size(), cache.tokens());
  BlockId parent = kNoBlock;
  for (size_t at = 0; at < tokens; at += kBlockTokens) {
    const size_t size = std::min(kBlockTokens, tokens - at);
    if (size < kBlockTokens && (!with_last || cache.window() != 0)) return;
    const std::span<const int32_t> block_ids = ids.subspan(at, size);
    size_t shared = 0;
    const BlockId known = BestChild(parent, block_ids, &shared);
    if (shared == size) {
      // The same ids, or more: the keys are the same bits, so the block that is there
      // serves.
      node(known).last_use = clock_;
      parent = known;
      continue;
    }
    const BlockId block = cache.block(at / kBlockTokens);
    // Dropped by the window, and given up by the tree: what follows has no path to hang
    // from.
    if (block == kNoBlock) return;
    RemoveShorter(parent, block_ids);
    Link(parent, block_ids, block);
    parent = block;
  }
}

void PrefixTree::Link(BlockId parent, std::span<const int32_t> ids, BlockId block) {
  Node& added = node(block);
  assert(added.size == 0);
  added.parent = parent;
  added.first_child = kNoBlock;
  BlockId* first = FirstChildOf(parent);
  added.next_sibling = *first;
  *first = block;
  added.size = ids.size();
  std::copy(ids.begin(), ids.end(), added.ids);
  added.last_use = clock_;
  pool_->Retain(block);
  ++stats_.blocks;
}

void PrefixTree::Unlink(BlockId block) {
  Node& removed = node(block);
  assert(removed.first_child == kNoBlock);
  BlockId* link = FirstChildOf(removed.parent);
  while (*link != block) link = &node(*link).next_sibling;
  *link = removed.next_sibling;
  removed.size = 0;
  --stats_.blocks;
  pool_->Release(block);
}

void PrefixTree::RemoveShorter(BlockId parent, std::span<const int32_t> ids) {
  for (BlockId child = *FirstChildOf(parent); child != kNoBlock;) {
    const BlockId next = node(child).next_sibling;
    const size_t size = node(child).size;
    if (size < ids.size() && SharedPrefix(ids, {node(child).ids, size}) == size) {
      Unlink(child);
    }
    child = next;
  }
}

void PrefixTree::UnlinkBelow(BlockId block) {
  // Not recursive: a path is as deep as a context is long.
  while (node(block).first_child != kNoBlock) {
    BlockId leaf = node(block).first_child;
    while (node(leaf).first_child != kNoBlock) leaf = node(leaf).first_child;
    if (pool_->refs(leaf) == 1) ++stats_.evictions;
    Unlink(leaf);
  }
}

void PrefixTree::ForgetBlock(BlockId block) {
  if (!Holds(block)) return;
  UnlinkBelow(block);
  Unlink(block);
}

bool PrefixTree::ReclaimBlock() {
  // A scan, since it runs once for each block that is taken from the tree, not for each
  // token.
  BlockId oldest = kNoBlock;
  bool oldest_is_leaf = false;
  for (size_t b = 0; b < nodes_.size(); ++b) {
    const BlockId block = static_cast<BlockId>(b);
    if (nodes_[b].size == 0 || pool_->refs(block) > 1) continue;
    const bool is_leaf = nodes_[b].first_child == kNoBlock;
    if (oldest_is_leaf && !is_leaf) continue;
    if (oldest == kNoBlock || (is_leaf && !oldest_is_leaf) ||
        nodes_[b].last_use < node(oldest).last_use) {
      oldest = block;
      oldest_is_leaf = is_leaf;
    }
  }
  if (oldest == kNoBlock) return false;
  UnlinkBelow(oldest);
  Unlink(oldest);
  ++stats_.evictions;
  return true;
}

}  // namespace kvasm
