// GPT-2s with random shapes and weights, as checkpoints in memory.

#ifndef KVASM_TESTS_NATIVE_RANDOM_MODEL_H_
#define KVASM_TESTS_NATIVE_RANDOM_MODEL_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "engine/sequence.h"
#include "formats/tensor_sink.h"
#include "model/gpt2_config.h"

namespace kvasm {

struct TestTensor {
  std::vector<uint64_t> shape;
  std::vector<float> elements;
};
using TestTensors = std::map<std::string, TestTensor>;

using TestRandom = std::mt19937;

inline size_t Uniform(TestRandom& random, size_t low, size_t high) {
  return std::uniform_int_distribution<size_t>(low, high)(random);
}

std::vector<float> RandomFloats(TestRandom& random, size_t n, float std_dev = 1.0f);
std::vector<int32_t> RandomIds(TestRandom& random, size_t n, size_t vocab_size);

// Odd sizes, several heads, grouped heads; small enough for thousands of forward
// passes.
Gpt2Config RandomConfig(TestRandom& random);

// Grouped heads, and nothing that is a multiple of 16.
Gpt2Config SmallConfig();

// Weights with a standard deviation of 0.2 (with GPT-2's own 0.02 attention is nearly
// uniform, and greedy decoding collapses into a loop: T20), gains around 1.
TestTensors RandomTensors(const Gpt2Config& config, TestRandom& random);

// An F32 safetensors file.
std::vector<uint8_t> ToSafetensors(const TestTensors& tensors);

// A file with this header and these data bytes, whether or not they fit together.
std::vector<uint8_t> SafetensorsFile(const std::string& header,
                                     const std::vector<uint8_t>& data = {});

// Collects every tensor of a file.
class CollectingSink : public TensorSink {
 public:
  Status OnTensors(const std::vector<TensorInfo>& tensors,
                   std::vector<bool>* wanted) override;
  void OnElements(size_t tensor, uint64_t first, const float* elements,
                  size_t count) override;

  TestTensors tensors;

 private:
  std::vector<std::string> names_;
};

// Has a reader consume a file in pieces of `piece` bytes, and finish.
template <class Reader>
Status ReadInPieces(Reader* reader, const std::vector<uint8_t>& file, size_t piece) {
  for (size_t i = 0; i < file.size(); i += piece) {
    // A copy of its own, so that the sanitizer sees a read past the piece.
    const std::vector<uint8_t> bytes(
        file.begin() + static_cast<std::ptrdiff_t>(i),
        file.begin() + static_cast<std::ptrdiff_t>(std::min(file.size(), i + piece)));
    KVASM_RETURN_IF_ERROR(reader->Consume(bytes.data(), bytes.size()));
  }
  KVASM_RETURN_IF_ERROR(reader->Finish());
  EXPECT_EQ(reader->file_bytes(), file.size());
  return OkStatus();
}

// Reads a file in pieces of `piece` bytes.
Status ReadSafetensors(const std::vector<uint8_t>& file, size_t piece,
                       TensorSink* sink);

WeightDtype RandomDtype(TestRandom& random);

StatusOr<std::unique_ptr<Engine>> LoadEngine(const Gpt2Config& config,
                                             const std::vector<uint8_t>& file,
                                             const EngineOptions& options = {},
                                             WeightDtype dtype = WeightDtype::kF32);

std::unique_ptr<Engine> RandomEngine(const Gpt2Config& config, TestRandom& random,
                                     const EngineOptions& options = {},
                                     WeightDtype dtype = WeightDtype::kF32);

// Steps the engine until `sequence` draws, and returns the token; fails the test if it
// does not.
int32_t NextToken(Sequence* sequence);

std::string ReadFile(const std::string& path);

}  // namespace kvasm

#endif  // KVASM_TESTS_NATIVE_RANDOM_MODEL_H_
