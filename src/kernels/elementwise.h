#ifndef KVASM_KERNELS_ELEMENTWISE_H_
#define KVASM_KERNELS_ELEMENTWISE_H_

#include <cstddef>

namespace kvasm {

// GPT-2's gelu_new, the tanh form (Hendrycks, Gimpel 2016):
// 0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))). In place; n is a multiple of 16.
void GeluNew(float* x, size_t n);

// In double precision, as the formula stands.
void NaiveGeluNew(float* x, size_t n);

// x += y; n is a multiple of 16.
void AddTo(float* x, const float* y, size_t n);

}  // namespace kvasm

#endif  // KVASM_KERNELS_ELEMENTWISE_H_
