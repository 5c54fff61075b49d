// One query head against one key/value head of a sequence, block by block.
//
// Keys and values lie in blocks of 16 tokens; block b of a sequence holds positions 16b
// .. 16b+15. Within a block, a head's keys are [head_dim, 16] (the scores of 16 tokens
// come out of straight vector code, without a horizontal sum), its values [16,
// head_dim].
//
// Every reduction runs over positions (or dims) in ascending order and in lanes of
// position modulo 16, so its bits depend on which keys are visible, not on where they
// lie or how they got there.

#ifndef KVASM_KERNELS_ATTENTION_H_
#define KVASM_KERNELS_ATTENTION_H_

#include <cstddef>

namespace kvasm {

inline constexpr size_t kBlockTokens = 16;

// The positions begin <= j < end that a query sees. Never empty.
struct KeyRange {
  size_t begin;
  size_t end;

  size_t first_block() const { return begin / kBlockTokens; }
  size_t end_block() const { return (end + kBlockTokens - 1) / kBlockTokens; }
};

// scores[j] = (q . k_j) * scale, for the blocks that hold `range`.
// q      [head_dim]
// blocks [end_block]: base of each block; entries before first_block are not read
// offset of the head's keys inside a block, in floats
// scores [16 * end_block]; written from 16 * first_block on, for invisible positions
// with anything
void AttentionScores(const float* q, size_t head_dim, const float* const* blocks,
                     size_t offset, KeyRange range, float scale, float* scores);

// Turns the scores of `range` into probabilities, in place; invisible positions of the
// first and the last block become 0.
void Softmax(KeyRange range, float* scores);

// out[d] = sum over j in range of probabilities[j] * v_j[d].
// out [head_dim]
void AttentionValues(const float* probabilities, size_t head_dim,
                     const float* const* blocks, size_t offset, KeyRange range,
                     float* out);

// The twins: the first and the last agree with the kernel to the bit, Softmax works in
// double.
void NaiveAttentionScores(const float* q, size_t head_dim, const float* const* blocks,
                          size_t offset, KeyRange range, float scale, float* scores);
void NaiveSoftmax(KeyRange range, float* scores);
void NaiveAttentionValues(const float* probabilities, size_t head_dim,
                          const float* const* blocks, size_t offset, KeyRange range,
                          float* out);

}  // namespace kvasm

#endif  // KVASM_KERNELS_ATTENTION_H_
