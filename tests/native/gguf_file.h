// GGUF files in memory.

#ifndef KVASM_TESTS_NATIVE_GGUF_FILE_H_
#define KVASM_TESTS_NATIVE_GGUF_FILE_H_

#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "model/gpt2_config.h"
#include "random_model.h"

namespace kvasm {

enum class GgufType : uint32_t {
  kF32 = 0,
  kF16 = 1,
  kQ4_0 = 2,
  kQ4_1 = 3,
  kQ5_0 = 6,
  kQ5_1 = 7,
  kQ8_0 = 8,
  kQ6_K = 14,
  kBf16 = 30,
};

template <typename T>
std::string Little(T value) {
  return {reinterpret_cast<const char*>(&value), sizeof(value)};
}

inline std::string GgufText(const std::string& text) {
  return Little<uint64_t>(text.size()) + text;
}

struct GgufFileTensor {
  std::string name;
  std::vector<uint64_t> dims;  // As GGUF has them: the fastest first.
  uint32_t type = 0;
  std::string bytes;
};

// What a file holds, whether or not it makes sense.
struct GgufFile {
  uint32_t version = 3;
  uint64_t alignment = 32;         // Of the tensors, whatever the pairs say.
  std::vector<std::string> pairs;  // Serialised.
  std::vector<GgufFileTensor> tensors;

  void Add(const std::string& key, uint32_t type, const std::string& value) {
    pairs.push_back(GgufText(key) + Little(type) + value);
  }
  void AddUint32(const std::string& key, uint32_t value) { Add(key, 4, Little(value)); }
  void AddFloat32(const std::string& key, float value) { Add(key, 6, Little(value)); }
  void AddText(const std::string& key, const std::string& value) {
    Add(key, 8, GgufText(value));
  }
  void AddTexts(const std::string& key, const std::vector<std::string>& values) {
    std::string all;
    for (const std::string& value : values) all += GgufText(value);
    Add(key, 9, Little<uint32_t>(8) + Little<uint64_t>(values.size()) + all);
  }

  std::vector<uint8_t> Bytes() const;
};

// A reader's view of it, piece by piece.
Status ReadGguf(const std::vector<uint8_t>& file, size_t piece, TensorSink* sink);

// `n` elements as random bytes of a type, with scales that are finite; n must be whole
// blocks.
std::string RandomEncoded(TestRandom& random, GgufType type, size_t n);

// The naive twin: element by element, from the format's description.
std::vector<float> DecodeNaively(GgufType type, const std::string& bytes);

// A checkpoint as a GGUF file: F32, or with each weight of the layers and the embedding
// replaced by random data of `type`, which is also put into *tensors as floats.
GgufFile ToGguf(const Gpt2Config& config, TestTensors* tensors,
                GgufType type = GgufType::kF32, TestRandom* random = nullptr);

}  // namespace kvasm

#endif  // KVASM_TESTS_NATIVE_GGUF_FILE_H_
