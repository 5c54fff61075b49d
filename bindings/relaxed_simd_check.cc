// Whether this engine's relaxed SIMD does what the kernels rely on.

#include <emscripten/bind.h>
#include <wasm_simd128.h>

#include <cstdint>

namespace kvasm {
namespace {

// Lanes of known numbers, from memory that the compiler must not look through: what is
// tested is the instruction, not the optimiser.
v128_t Opaque(const void* numbers) {
  const void* volatile hidden = numbers;
  return wasm_v128_load(hidden);
}

// The dot products of signed bytes with bytes from 0 to 127 have one right result. Node
// 20 gives twice that on some CPUs.
bool DotIsExact() {
  alignas(16) int8_t a[16];
  alignas(16) int8_t b[16];
  alignas(16) int32_t c[4] = {1000, -7, 0, 123456};
  alignas(16) int32_t result[4];
  alignas(16) int16_t pairs[8];
  // The second round has the largest products, whose sums of pairs just fit 16 bits.
  for (int round = 0; round < 2; ++round) {
    for (int i = 0; i < 16; ++i) {
      a[i] = round == 0 ? static_cast<int8_t>(i * 37 - 120)
                        : static_cast<int8_t>(i < 8 ? -128 : 127);
      b[i] = round == 0 ? static_cast<int8_t>(i * 53 % 128) : int8_t{127};
    }
    wasm_v128_store(result, wasm_i32x4_relaxed_dot_i8x16_i7x16_add(Opaque(a), Opaque(b),
                                                                   Opaque(c)));
    wasm_v128_store(pairs, wasm_i16x8_relaxed_dot_i8x16_i7x16(Opaque(a), Opaque(b)));
    for (int lane = 0; lane < 4; ++lane) {
      int32_t expected = c[lane];
      for (int i = 4 * lane; i < 4 * lane + 4; ++i) expected += a[i] * b[i];
      if (result[lane] != expected) return false;
    }
    for (int lane = 0; lane < 8; ++lane) {
      const int i = 2 * lane;
      if (pairs[lane] != a[i] * b[i] + a[i + 1] * b[i + 1]) return false;
    }
  }
  return true;
}

// A multiplication with addition may round once or twice, but always the same way, in
// every lane: the one invariant needs it.
bool MaddIsDeterministic() {
  // (1 + 2^-12)^2 - (1 + 2^-11) is 2^-24, or 0 if the product is rounded first.
  alignas(16) const float a[4] = {1.0f + 0x1p-12f, 1.0f + 0x1p-12f, 1.0f + 0x1p-12f,
                                  1.0f + 0x1p-12f};
  alignas(16) const float c[4] = {-1.0f - 0x1p-11f, -1.0f - 0x1p-11f, -1.0f - 0x1p-11f,
                                  -1.0f - 0x1p-11f};
  alignas(16) float result[4];
  float first = 0.0f;
  for (int round = 0; round < 1000; ++round) {
    wasm_v128_store(result, wasm_f32x4_relaxed_madd(Opaque(a), Opaque(a), Opaque(c)));
    if (round == 0) first = result[0];
    if (first != 0.0f && first != 0x1p-24f) return false;
    for (const float lane : result) {
      if (lane != first) return false;
    }
  }
  return true;
}

bool RelaxedSimdWorks() { return DotIsExact() && MaddIsDeterministic(); }

}  // namespace

EMSCRIPTEN_BINDINGS(kvasm_relaxed_simd) {
  emscripten::function("relaxedSimdWorks", &RelaxedSimdWorks);
}

}  // namespace kvasm
