#include "kernels/exp.h"

namespace kvasm {

extern const ExpConstants kExpConstants = {
    .smallest = -87.0f,
    .log2_e = 1.44269504f,
    .round = 0x1.8p23f,
    // ln 2 in two parts, the first of so few bits that n times it is exact.
    .ln2_high = 0.693359375f,
    .ln2_low = -2.12194440e-4f,
    .polynomial = {1.9875691500e-4f, 1.3981999507e-3f, 8.3334519073e-3f,
                   4.1665795894e-2f, 1.6666665459e-1f, 5.0000001201e-1f, 1.0f, 1.0f}};

}  // namespace kvasm
