// Which keys a query sees.

#ifndef KVASM_KERNELS_KEY_RANGE_H_
#define KVASM_KERNELS_KEY_RANGE_H_

#include <cstddef>

#include "kernels/kv_layout.h"

namespace kvasm {

// The positions begin <= j < end that a query sees. Never empty.
struct KeyRange {
  size_t begin;
  size_t end;

  size_t first_block() const { return begin / kBlockTokens; }
  size_t end_block() const { return (end + kBlockTokens - 1) / kBlockTokens; }
};

}  // namespace kvasm

#endif  // KVASM_KERNELS_KEY_RANGE_H_
