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

#include "kernels/key_range.h"
#include "kernels/kv_layout.h"

namespace kvasm {

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

// out[d] = sum over j in range of probabilities[j] * v_j[d].
// out [head_dim]
void AttentionValues(const float* probabilities, const KvHead& values, KeyRange range,
                     float* out);

// The same for two queries of one sequence, which share the loads of keys and values;
// the bits are those of one after the other. Blocks that one of them sees exist.
// q             [2] rows of [head_dim]
// scores        [2] rows of [16 * end_block], the larger one
// probabilities [2] rows, as Softmax leaves the scores
// out           [2] rows of [head_dim]
void AttentionScoresOfTwo(const float* q, size_t q_stride, const KvHead& keys,
                          const KeyRange (&ranges)[2], float scale, float* scores,
                          size_t scores_stride);
void AttentionValuesOfTwo(const float* probabilities, size_t p_stride,
                          const KvHead& values, const KeyRange (&ranges)[2], float* out,
                          size_t out_stride);

// The twins, which agree with the kernels to the bit.
void NaiveAttentionScores(const float* q, const KvHead& keys, KeyRange range,
                          float scale, float* scores);
void NaiveAttentionValues(const float* probabilities, const KvHead& values,
                          KeyRange range, float* out);

}  // namespace kvasm

#endif  // KVASM_KERNELS_ATTENTION_H_
