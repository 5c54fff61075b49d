#ifndef KVASM_KERNELS_WEIGHT_DTYPE_H_
#define KVASM_KERNELS_WEIGHT_DTYPE_H_

#include <cstddef>
#include <cstdint>

namespace kvasm {

// How the elements of weight matrices are stored.
enum class WeightDtype : uint8_t {
  kF32,
  kQ8,  // Integers -127 .. 127, times a scale for 32 of them along the inputs: 9 bits.
  kQ4,  // Integers -8 .. 7, likewise: 4.5 bits.
};

// Inputs that share a scale: weights of one output, and activations of one row.
inline constexpr size_t kQuantGroup = 32;

constexpr size_t QuantGroups(size_t n) { return (n + kQuantGroup - 1) / kQuantGroup; }

}  // namespace kvasm

#endif  // KVASM_KERNELS_WEIGHT_DTYPE_H_
