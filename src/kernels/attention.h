// One query head against one key/value head of a sequence, block by block.
//
// Block b of a sequence holds positions 16b .. 16b+15, as kv_layout.h says. Every
// reduction runs over positions (or dims) in ascending order and in lanes of position
// modulo 16, so its bits depend on which keys are visible, not on where they lie or how
// they got there.

#ifndef KVASM_KERNELS_ATTENTION_H_
#define KVASM_KERNELS_ATTENTION_H_

#include <cstddef>
#include <cstdint>

#include "kernels/kv_layout.h"

namespace kvasm {

// The positions begin <= j < end that a query sees. Never empty.
struct KeyRange {
  size_t begin;
  size_t end;

  size_t first_block() const { return begin / kBlockTokens; }
  size_t end_block() const { return (end + kBlockTokens - 1) / kBlockTokens; }
};

// A head's keys, or values, over the blocks of a sequence.
struct KvHead {
  KvDtype dtype;
  size_t head_dim;
  const uint8_t* const*
      blocks;     // [end_block]; entries before a range's first_block are not read
  size_t offset;  // of the head's area inside each block, in bytes

  const uint8_t* Area(size_t block) const { return blocks[block] + offset; }
};

// scores[j] = (q . k_j) * scale, for the blocks that hold `range`.
// q      [head_dim]
// scores [16 * end_block]; written from 16 * first_block on, for invisible positions
// with anything
void AttentionScores(const float* q, const KvHead& keys, KeyRange range, float scale,
                     float* scores);

// Turns the scores of `range` into probabilities, in place; invisible positions of the
// first and the last block become 0.
void Softmax(KeyRange range, float* scores);

// out[d] = sum over j in range of probabilities[j] * v_j[d].
// out [head_dim]
void AttentionValues(const float* probabilities, const KvHead& values, KeyRange range,
                     float* out);

// The twins: the first and the last agree with the kernel to the bit, Softmax works in
// double.
void NaiveAttentionScores(const float* q, const KvHead& keys, KeyRange range,
                          float scale, float* scores);
void NaiveSoftmax(KeyRange range, float* scores);
void NaiveAttentionValues(const float* probabilities, const KvHead& values,
                          KeyRange range, float* out);

}  // namespace kvasm

#endif  // KVASM_KERNELS_ATTENTION_H_
