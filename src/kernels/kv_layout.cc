#include "kernels/kv_layout.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/float16.h"

namespace kvasm {
namespace {

// Element `dim` of the token in `slot` is at slot * slot_stride + dim * dim_stride.
struct Order {
  size_t slot_stride;
  size_t dim_stride;
};

Order KeyOrder() { return {1, kBlockTokens}; }
Order ValueOrder(size_t head_dim) { return {head_dim, 1}; }

float* Scales(uint8_t* area, size_t head_dim) {
  return reinterpret_cast<float*>(area + kBlockTokens * head_dim);
}

void Store(KvDtype dtype, const float* x, size_t head_dim, size_t slot, Order order,
           uint8_t* area) {
  const size_t first = slot * order.slot_stride;
  switch (dtype) {
    case KvDtype::kF32: {
      float* to = reinterpret_cast<float*>(area) + first;
      for (size_t d = 0; d < head_dim; ++d) to[d * order.dim_stride] = x[d];
      break;
    }
    case KvDtype::kF16: {
      uint16_t* to = reinterpret_cast<uint16_t*>(area) + first;
      for (size_t d = 0; d < head_dim; ++d) {
        to[d * order.dim_stride] = FloatToFloat16(x[d]);
      }
      break;
    }
    case KvDtype::kQ8: {
      float max = 0;
      for (size_t d = 0; d < head_dim; ++d) max = std::max(max, std::fabs(x[d]));
      const float inverse = max > 0 ? 127 / max : 0;
      bool finite = true;
      int8_t* to = reinterpret_cast<int8_t*>(area) + first;
      for (size_t d = 0; d < head_dim; ++d) {
        const float q = std::nearbyint(x[d] * inverse);
        const bool in_range = q >= -127 && q <= 127;
        finite &= in_range;
        to[d * order.dim_stride] = in_range ? static_cast<int8_t>(q) : int8_t{0};
      }
      // int8 has no NaN: what is not finite comes out again through the scale.
      Scales(area, head_dim)[slot] = finite ? max / 127 : NAN;
      break;
    }
  }
}

}  // namespace

void StoreKey(KvDtype dtype, const float* key, size_t head_dim, size_t slot,
              uint8_t* area) {
  Store(dtype, key, head_dim, slot, KeyOrder(), area);
}

void StoreValue(KvDtype dtype, const float* value, size_t head_dim, size_t slot,
                uint8_t* area) {
  Store(dtype, value, head_dim, slot, ValueOrder(head_dim), area);
}

}  // namespace kvasm
