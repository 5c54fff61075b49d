// tests/golden: models with PyTorch's logits. See the README there for the format.

#ifndef KVASM_TESTS_NATIVE_GOLDEN_H_
#define KVASM_TESTS_NATIVE_GOLDEN_H_

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "random_model.h"

namespace kvasm {

struct GoldenPrompt {
  std::vector<int32_t> ids;
  std::vector<int32_t> greedy;
  size_t vocab_size;
  std::vector<float> logits;  // [ids, vocab_size]
};

inline std::string GoldenPath(const std::string& name) {
  return std::string(KVASM_SOURCE_DIR) + "/tests/golden/" + name + "/";
}

inline std::vector<uint8_t> ReadBytes(const std::string& path) {
  const std::string text = ReadFile(path);
  return {text.begin(), text.end()};
}

inline std::vector<GoldenPrompt> ReadGoldenPrompts(const std::string& name) {
  const std::string bytes = ReadFile(GoldenPath(name) + "expected.bin");
  size_t at = 0;
  const auto read = [&](auto* to, size_t count) {
    if (count == 0) return;
    std::memcpy(to, bytes.data() + at, count * sizeof(*to));
    at += count * sizeof(*to);
  };
  int32_t prompts = 0;
  read(&prompts, 1);
  std::vector<GoldenPrompt> result(static_cast<size_t>(prompts));
  for (GoldenPrompt& prompt : result) {
    int32_t sizes[3];
    read(sizes, 3);
    prompt.ids.resize(static_cast<size_t>(sizes[0]));
    prompt.greedy.resize(static_cast<size_t>(sizes[1]));
    prompt.vocab_size = static_cast<size_t>(sizes[2]);
    prompt.logits.resize(prompt.ids.size() * prompt.vocab_size);
    read(prompt.ids.data(), prompt.ids.size());
    read(prompt.greedy.data(), prompt.greedy.size());
    read(prompt.logits.data(), prompt.logits.size());
  }
  return result;
}

}  // namespace kvasm

#endif  // KVASM_TESTS_NATIVE_GOLDEN_H_
