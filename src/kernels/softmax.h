// The softmax of one query's scores, in the blocks that attention.h computes them in.

#ifndef KVASM_KERNELS_SOFTMAX_H_
#define KVASM_KERNELS_SOFTMAX_H_

#include "kernels/key_range.h"

namespace kvasm {

// Turns the scores of `range` into probabilities, in place; invisible positions of the
// first and the last block become 0. The sum is taken in lanes of position modulo 16,
// ascending.
// scores [16 * end_block]
void Softmax(KeyRange range, float* scores);

// The twin, which works in double.
void NaiveSoftmax(KeyRange range, float* scores);

}  // namespace kvasm

#endif  // KVASM_KERNELS_SOFTMAX_H_
