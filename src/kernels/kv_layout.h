// How the keys and values of one head lie inside a block of 16 tokens.

#ifndef KVASM_KERNELS_KV_LAYOUT_H_
#define KVASM_KERNELS_KV_LAYOUT_H_

#include <cstddef>
#include <cstdint>

namespace kvasm {

inline constexpr size_t kBlockTokens = 16;

enum class KvDtype {
  kF32,
  kF16,  // IEEE binary16. Keys and values of GPT-2 are far below its largest number,
         // 65504.
  kQ8,   // int8, with a float scale per token and head.
};

constexpr size_t KvElementBytes(KvDtype dtype) {
  return dtype == KvDtype::kF32 ? 4 : dtype == KvDtype::kF16 ? 2 : 1;
}

// One token's keys, or its values, of one head.
constexpr size_t KvTokenBytes(KvDtype dtype, size_t head_dim) {
  return head_dim * KvElementBytes(dtype) + (dtype == KvDtype::kQ8 ? sizeof(float) : 0);
}

// A head's keys in a block: elements [head_dim, 16], so that the scores of 16 tokens
// come out of straight vector code, without a horizontal sum. Its values: elements [16,
// head_dim]. For kQ8, both are followed by the 16 tokens' scales.
constexpr size_t KvHeadBytes(KvDtype dtype, size_t head_dim) {
  return kBlockTokens * KvTokenBytes(dtype, head_dim);
}

// Stores a token's keys or values, [head_dim] floats, into slot 0 .. 15 of a head's
// area. The float is rounded to nearest, for kQ8 to a multiple of max|x| / 127.
void StoreKey(KvDtype dtype, const float* key, size_t head_dim, size_t slot,
              uint8_t* area);
void StoreValue(KvDtype dtype, const float* value, size_t head_dim, size_t slot,
                uint8_t* area);

}  // namespace kvasm

#endif  // KVASM_KERNELS_KV_LAYOUT_H_
