// Writes valid inputs for each fuzz target into DIR/<target>/.

#include <filesystem>
#include <fstream>
#include <iostream>

#include "engine/sequence.h"
#include "fuzz/session_model.h"
#include "gguf_file.h"
#include "random_model.h"

namespace kvasm {
namespace {

void Write(const std::filesystem::path& directory, const std::string& name,
           const std::vector<uint8_t>& bytes) {
  std::filesystem::create_directories(directory);
  std::ofstream file(directory / name, std::ios::binary);
  file.write(reinterpret_cast<const char*>(bytes.data()),
             static_cast<std::streamsize>(bytes.size()));
}

void WriteText(const std::filesystem::path& directory, const std::string& name,
               const std::string& text) {
  Write(directory, name, {text.begin(), text.end()});
}

// The size of the pieces, then the file.
std::vector<uint8_t> InPieces(uint8_t piece, std::vector<uint8_t> file) {
  file.insert(file.begin(), piece);
  return file;
}

void WriteWeights(const std::filesystem::path& root) {
  TestRandom random(1);
  // As in checkpoint_fuzz.cc.
  const Gpt2Config config = {.n_layer = 1,
                             .n_head = 2,
                             .n_kv_head = 2,
                             .n_embd = 4,
                             .n_inner = 3,
                             .n_positions = 5,
                             .vocab_size = 7};
  TestTensors tensors = RandomTensors(config, random);
  const std::vector<uint8_t> safetensors = ToSafetensors(tensors);
  const std::vector<uint8_t> gguf = ToGguf(config, &tensors).Bytes();
  Write(root / "safetensors", "model", InPieces(9, safetensors));
  Write(root / "gguf", "model", InPieces(9, gguf));
  Write(root / "checkpoint", "safetensors", InPieces(15, safetensors));
  Write(root / "checkpoint", "gguf", InPieces(15, gguf));

  Write(root / "safetensors", "dtypes",
        InPieces(2, SafetensorsFile(
                        R"({"__metadata__":{"format":"pt"},)"
                        R"("u":{"dtype":"U8","shape":[3],"data_offsets":[0,3]},)"
                        R"("h":{"dtype":"F16","shape":[2],"data_offsets":[3,7]},)"
                        R"("b":{"dtype":"BF16","shape":[1,1],"data_offsets":[7,9]}})",
                        std::vector<uint8_t>(9))));
  for (const GgufType type :
       {GgufType::kF16, GgufType::kBf16, GgufType::kQ4_0, GgufType::kQ4_1,
        GgufType::kQ5_0, GgufType::kQ5_1, GgufType::kQ8_0, GgufType::kQ6_K}) {
    GgufFile file;
    file.AddUint32("general.alignment", 8);
    file.tensors.push_back(
        {"t", {256, 2}, static_cast<uint32_t>(type), RandomEncoded(random, type, 512)});
    file.tensors.push_back({"f", {3}, 0, std::string(12, '\0')});
    file.alignment = 8;
    Write(root / "gguf", "type" + std::to_string(static_cast<int>(type)),
          InPieces(31, file.Bytes()));
  }
  GgufFile file;
  file.version = 2;
  file.AddText("general.name", "metadata");
  for (const auto& [type, bytes] :
       {std::pair(0u, 1), std::pair(2u, 2), std::pair(7u, 1), std::pair(12u, 8)}) {
    file.Add("n" + std::to_string(type), type, std::string(bytes, '\1'));
    file.Add("a" + std::to_string(type), 9,
             Little(type) + Little<uint64_t>(3) + std::string(3 * bytes, '\1'));
  }
  file.AddTexts("tokenizer.ggml.tokens", {"a", "b", "ab", ""});
  file.AddTexts("tokenizer.ggml.merges", {"a b"});
  file.AddTexts("other", {"a", "bcd"});
  file.Add("tokenizer.ggml.token_type", 9,
           Little<uint32_t>(5) + Little<uint64_t>(2) + Little<int32_t>(1) +
               Little<int32_t>(3));
  Write(root / "gguf", "metadata", InPieces(0, file.Bytes()));
}

void WriteSessions(const std::filesystem::path& root) {
  TestRandom random(2);
  for (const size_t window : kSessionWindows) {
    const std::unique_ptr<Engine> engine = MakeSessionEngine(window);
    for (const size_t length : {1u, 16u, 50u}) {
      const std::vector<int32_t> prompt = RandomIds(random, length, 10);
      auto sequence = engine->StartSequence(prompt, {});
      for (int i = 0; i < 3; ++i) NextToken(sequence->get());
      Write(root / "session", std::to_string(window) + "-" + std::to_string(length),
            *(*sequence)->Save());
    }
  }
}

void WriteJson(const std::filesystem::path& root) {
  WriteText(root / "json", "config",
            R"({"model_type":"gpt2","activation_function":"gelu_new","n_layer":12,)"
            R"("n_head":12,"n_kv_head":4,"n_embd":768,"n_inner":null,)"
            R"("n_positions":1024,"vocab_size":50257,"layer_norm_epsilon":1e-05,)"
            R"("scale_attn_weights":true,"scale_attn_by_inverse_layer_idx":false,)"
            R"("add_cross_attention":false,"eos_token_id":50256})");
  WriteText(root / "json", "index",
            R"({"metadata":{"total_size":12},"weight_map":{)"
            R"("wte.weight":"model-00001-of-00002.safetensors",)"
            R"("ln_f.bias":"model-00002-of-00002.safetensors"}})");
}

}  // namespace
}  // namespace kvasm

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: make_fuzz_seeds DIR\n";
    return 2;
  }
  kvasm::WriteWeights(argv[1]);
  kvasm::WriteSessions(argv[1]);
  kvasm::WriteJson(argv[1]);
  return 0;
}
