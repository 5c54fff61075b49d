#ifndef KVASM_KERNELS_LAYER_NORM_H_
#define KVASM_KERNELS_LAYER_NORM_H_

#include <cstddef>

namespace kvasm {

// Layer normalisation (Ba, Kiros, Hinton 2016): (x - mean) / sqrt(variance + epsilon) *
// gain + bias over the n columns of each row, with the biased variance. x, out [rows,
// stride], stride >= PaddedSize(n); gain, bias [PaddedSize(n)]. The padding of out is
// written with anything finite. x and out may be the same.
void LayerNorm(const float* x, size_t rows, size_t stride, size_t n, const float* gain,
               const float* bias, float epsilon, float* out);

// In double precision, one element at a time.
void NaiveLayerNorm(const float* x, size_t rows, size_t stride, size_t n,
                    const float* gain, const float* bias, float epsilon, float* out);

}  // namespace kvasm

#endif  // KVASM_KERNELS_LAYER_NORM_H_
