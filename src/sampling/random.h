#ifndef KVASM_SAMPLING_RANDOM_H_
#define KVASM_SAMPLING_RANDOM_H_

#include <cstdint>

namespace kvasm {

// SplitMix64 (Steele, Lea, Flood 2014): one draw a token needs no more state than this,
// and every seed, 0 included, starts a good stream. The same numbers on every platform,
// which <random>'s distributions do not promise.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}

  uint64_t Next() {
    uint64_t z = (state_ += 0x9E3779B97F4A7C15u);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
  }

  // Uniform in [0, 1).
  double NextUnit() { return static_cast<double>(Next() >> 11) * 0x1p-53; }

 private:
  uint64_t state_;
};

}  // namespace kvasm

#endif  // KVASM_SAMPLING_RANDOM_H_
