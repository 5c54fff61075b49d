#include "formats/tensor_encoding.h"

#include <bit>
#include <cstring>

#include "base/float16.h"

namespace kvasm {

static_assert(std::endian::native == std::endian::little,
              "the files are little endian, and their numbers are copied as they are");

namespace {

uint16_t Load16(const uint8_t* bytes) {
  uint16_t bits;
  std::memcpy(&bits, bytes, sizeof(bits));
  return bits;
}

uint32_t Load32(const uint8_t* bytes) {
  uint32_t bits;
  std::memcpy(&bits, bytes, sizeof(bits));
  return bits;
}

float LoadF16(const uint8_t* bytes) { return Float16ToFloat(Load16(bytes)); }

void DecodeF32(const uint8_t* bytes, size_t blocks, float* elements) {
  std::memcpy(elements, bytes, blocks * sizeof(float));
}

void DecodeF16(const uint8_t* bytes, size_t blocks, float* elements) {
  for (size_t i = 0; i < blocks; ++i) elements[i] = LoadF16(bytes + 2 * i);
}

void DecodeBf16(const uint8_t* bytes, size_t blocks, float* elements) {
  for (size_t i = 0; i < blocks; ++i) {
    elements[i] = BFloat16ToFloat(Load16(bytes + 2 * i));
  }
}

// 32 elements: a scale, and a signed byte each.
void DecodeQ8_0(const uint8_t* bytes, size_t blocks, float* elements) {
  for (size_t b = 0; b < blocks; ++b, bytes += 34, elements += 32) {
    const float scale = LoadF16(bytes);
    for (size_t i = 0; i < 32; ++i) {
      elements[i] = static_cast<float>(static_cast<int8_t>(bytes[2 + i])) * scale;
    }
  }
}

// 32 elements of 4 or 5 bits: a scale, the least value where there is one (else the
// numbers are centred), the fifth bits where there are any (element i's is bit i), and
// 16 bytes, byte i with element i in its lower half and element i + 16 in its upper.
template <bool kHasMinimum, bool kHasFifthBits>
void DecodeNibbles(const uint8_t* bytes, size_t blocks, float* elements) {
  constexpr int kCentre = kHasFifthBits ? 16 : 8;
  constexpr size_t kFifthBits = kHasMinimum ? 4 : 2;
  constexpr size_t kNibbles = kFifthBits + (kHasFifthBits ? 4 : 0);
  for (size_t b = 0; b < blocks; ++b, bytes += kNibbles + 16, elements += 32) {
    const float scale = LoadF16(bytes);
    const float minimum = kHasMinimum ? LoadF16(bytes + 2) : 0.0f;
    const uint32_t fifth_bits = kHasFifthBits ? Load32(bytes + kFifthBits) : 0;
    for (size_t i = 0; i < 32; ++i) {
      const uint8_t pair = bytes[kNibbles + i % 16];
      int q = i < 16 ? pair & 0xF : pair >> 4;
      q |= static_cast<int>(fifth_bits >> i & 1u) << 4;
      elements[i] = kHasMinimum ? static_cast<float>(q) * scale + minimum
                                : static_cast<float>(q - kCentre) * scale;
    }
  }
}

// 256 elements of 6 bits: for each half of 128, 64 bytes of lower four bits (byte i for
// elements i and i + 64) and 32 of upper two (byte i for i, i + 32, i + 64, i + 96);
// then a signed byte of scale for each 16 elements, and a scale for all.
void DecodeQ6K(const uint8_t* bytes, size_t blocks, float* elements) {
  for (size_t b = 0; b < blocks; ++b, bytes += 210) {
    const uint8_t* scales = bytes + 192;
    const float scale = LoadF16(bytes + 208);
    for (size_t half = 0; half < 2; ++half) {
      const uint8_t* lower = bytes + half * 64;
      const uint8_t* upper = bytes + 128 + half * 32;
      for (size_t i = 0; i < 128; ++i) {
        const uint8_t pair = lower[i % 64];
        const int low = i < 64 ? pair & 0xF : pair >> 4;
        const int high = upper[i % 32] >> (2 * (i / 32)) & 3;
        const size_t at = half * 128 + i;
        const float group = static_cast<float>(static_cast<int8_t>(scales[at / 16]));
        elements[at] = scale * group * static_cast<float>((low | high << 4) - 32);
      }
    }
    elements += 256;
  }
}

constexpr TensorEncoding kF32 = {"F32", 1, 4, DecodeF32};
constexpr TensorEncoding kF16 = {"F16", 1, 2, DecodeF16};
constexpr TensorEncoding kBf16 = {"BF16", 1, 2, DecodeBf16};
constexpr TensorEncoding kQ4_0 = {"Q4_0", 32, 18, DecodeNibbles<false, false>};
constexpr TensorEncoding kQ4_1 = {"Q4_1", 32, 20, DecodeNibbles<true, false>};
constexpr TensorEncoding kQ5_0 = {"Q5_0", 32, 22, DecodeNibbles<false, true>};
constexpr TensorEncoding kQ5_1 = {"Q5_1", 32, 24, DecodeNibbles<true, true>};
constexpr TensorEncoding kQ8_0 = {"Q8_0", 32, 34, DecodeQ8_0};
constexpr TensorEncoding kQ6K = {"Q6_K", kMaxBlockElements, kMaxBlockBytes, DecodeQ6K};

}  // namespace

const TensorEncoding* SafetensorsEncoding(std::string_view dtype) {
  for (const TensorEncoding* encoding : {&kF32, &kF16, &kBf16}) {
    if (dtype == encoding->name) return encoding;
  }
  return nullptr;
}

const TensorEncoding* GgufEncoding(uint32_t type) {
  switch (type) {
    case 0:
      return &kF32;
    case 1:
      return &kF16;
    case 2:
      return &kQ4_0;
    case 3:
      return &kQ4_1;
    case 6:
      return &kQ5_0;
    case 7:
      return &kQ5_1;
    case 8:
      return &kQ8_0;
    case 14:
      return &kQ6K;
    case 30:
      return &kBf16;
    default:
      return nullptr;
  }
}

const char* GgufTypeName(uint32_t type) {
  if (const TensorEncoding* encoding = GgufEncoding(type)) return encoding->name;
  switch (type) {
    case 9:
      return "Q8_1";
    case 10:
      return "Q2_K";
    case 11:
      return "Q3_K";
    case 12:
      return "Q4_K";
    case 13:
      return "Q5_K";
    case 15:
      return "Q8_K";
    case 24:
      return "I8";
    case 25:
      return "I16";
    case 26:
      return "I32";
    case 27:
      return "I64";
    case 28:
      return "F64";
    default:
      return nullptr;
  }
}

}  // namespace kvasm
