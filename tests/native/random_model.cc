#include "random_model.h"

#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <iterator>

#include "formats/safetensors.h"
#include "model/gpt2_checkpoint.h"

namespace kvasm {

std::vector<float> RandomFloats(TestRandom& random, size_t n, float std_dev) {
  std::normal_distribution<float> normal(0.0f, std_dev);
  std::vector<float> floats(n);
  for (float& x : floats) x = normal(random);
  return floats;
}

std::vector<int32_t> RandomIds(TestRandom& random, size_t n, size_t vocab_size) {
  std::vector<int32_t> ids(n);
  for (int32_t& id : ids) id = static_cast<int32_t>(Uniform(random, 0, vocab_size - 1));
  return ids;
}

Gpt2Config RandomConfig(TestRandom& random) {
  Gpt2Config c;
  c.n_layer = Uniform(random, 1, 3);
  c.n_kv_head = Uniform(random, 1, 3);
  c.n_head = c.n_kv_head * Uniform(random, 1, 3);
  c.n_embd = c.n_head * Uniform(random, 1, 20);
  c.n_inner = Uniform(random, 1, 80);
  c.n_positions = Uniform(random, 1, 70);
  c.vocab_size = Uniform(random, 2, 90);
  return c;
}

Gpt2Config SmallConfig() {
  Gpt2Config config;
  config.n_layer = 2;
  config.n_head = 2;
  config.n_kv_head = 1;
  config.n_embd = 24;
  config.n_inner = 40;
  config.n_positions = 50;
  config.vocab_size = 61;
  return config;
}

TestTensors RandomTensors(const Gpt2Config& c, TestRandom& random) {
  TestTensors tensors;
  const auto add = [&](const std::string& name, std::vector<uint64_t> shape,
                       float mean = 0.0f) {
    size_t n = 1;
    for (const uint64_t dim : shape) n *= dim;
    std::vector<float> elements = RandomFloats(random, n, 0.2f);
    for (float& x : elements) x += mean;
    tensors[name] = {std::move(shape), std::move(elements)};
  };
  add("wte.weight", {c.vocab_size, c.n_embd});
  add("wpe.weight", {c.n_positions, c.n_embd});
  add("ln_f.weight", {c.n_embd}, 1.0f);
  add("ln_f.bias", {c.n_embd});
  for (size_t l = 0; l < c.n_layer; ++l) {
    const std::string h = "h." + std::to_string(l) + ".";
    add(h + "ln_1.weight", {c.n_embd}, 1.0f);
    add(h + "ln_1.bias", {c.n_embd});
    add(h + "attn.c_attn.weight", {c.n_embd, c.n_qkv()});
    add(h + "attn.c_attn.bias", {c.n_qkv()});
    add(h + "attn.c_proj.weight", {c.n_embd, c.n_embd});
    add(h + "attn.c_proj.bias", {c.n_embd});
    add(h + "ln_2.weight", {c.n_embd}, 1.0f);
    add(h + "ln_2.bias", {c.n_embd});
    add(h + "mlp.c_fc.weight", {c.n_embd, c.n_inner});
    add(h + "mlp.c_fc.bias", {c.n_inner});
    add(h + "mlp.c_proj.weight", {c.n_inner, c.n_embd});
    add(h + "mlp.c_proj.bias", {c.n_embd});
  }
  return tensors;
}

std::vector<uint8_t> SafetensorsFile(const std::string& header,
                                     const std::vector<uint8_t>& data) {
  const uint64_t length = header.size();
  std::vector<uint8_t> file(8);
  std::memcpy(file.data(), &length, 8);
  file.insert(file.end(), header.begin(), header.end());
  file.insert(file.end(), data.begin(), data.end());
  return file;
}

std::vector<uint8_t> ToSafetensors(const TestTensors& tensors) {
  std::string header = "{";
  std::vector<uint8_t> data;
  for (const auto& [name, tensor] : tensors) {
    const size_t begin = data.size();
    const size_t bytes = tensor.elements.size() * sizeof(float);
    data.resize(begin + bytes);
    if (bytes > 0) std::memcpy(data.data() + begin, tensor.elements.data(), bytes);
    std::string shape;
    for (const uint64_t dim : tensor.shape) {
      shape += (shape.empty() ? "" : ",") + std::to_string(dim);
    }
    header += (header.size() > 1 ? ",\"" : "\"") + name +
              R"(":{"dtype":"F32","shape":[)" + shape + R"(],"data_offsets":[)" +
              std::to_string(begin) + "," + std::to_string(data.size()) + "]}";
  }
  return SafetensorsFile(header + "}", data);
}

Status CollectingSink::OnTensors(const std::vector<TensorInfo>& infos,
                                 std::vector<bool>* wanted) {
  for (size_t i = 0; i < infos.size(); ++i) {
    size_t n = 1;
    for (const uint64_t dim : infos[i].shape) n *= dim;
    names_.push_back(infos[i].name);
    tensors[infos[i].name] = {infos[i].shape, std::vector<float>(n)};
    const std::string& dtype = infos[i].dtype;
    (*wanted)[i] = dtype == "F32" || dtype == "F16" || dtype == "BF16";
  }
  return OkStatus();
}

void CollectingSink::OnElements(size_t tensor, uint64_t first, const float* elements,
                                size_t count) {
  std::vector<float>& to = tensors[names_[tensor]].elements;
  ASSERT_LE(first + count, to.size());
  std::copy(elements, elements + count,
            to.begin() + static_cast<std::ptrdiff_t>(first));
}

Status ReadSafetensors(const std::vector<uint8_t>& file, size_t piece,
                       TensorSink* sink) {
  SafetensorsReader reader(sink);
  return ReadInPieces(&reader, file, piece);
}

WeightDtype RandomDtype(TestRandom& random) {
  constexpr WeightDtype kDtypes[] = {WeightDtype::kF32, WeightDtype::kQ8,
                                     WeightDtype::kQ4};
  return kDtypes[Uniform(random, 0, std::size(kDtypes) - 1)];
}

StatusOr<std::unique_ptr<Engine>> LoadEngine(const Gpt2Config& config,
                                             const std::vector<uint8_t>& file,
                                             const EngineOptions& options,
                                             WeightDtype dtype) {
  Gpt2CheckpointSink sink(config, CheckpointFormat::kHuggingFace, dtype);
  KVASM_RETURN_IF_ERROR(ReadSafetensors(file, 1000, &sink));
  return Engine::Create(std::move(sink.weights()), options);
}

std::unique_ptr<Engine> RandomEngine(const Gpt2Config& config, TestRandom& random,
                                     const EngineOptions& options, WeightDtype dtype) {
  StatusOr<std::unique_ptr<Engine>> engine =
      LoadEngine(config, ToSafetensors(RandomTensors(config, random)), options, dtype);
  EXPECT_TRUE(engine.ok()) << engine.status().message();
  return std::move(*engine);
}

int32_t NextToken(Sequence* sequence) {
  for (;;) {
    bool stepped = false;
    for (const StepEvent& event : sequence->engine()->Step()) {
      stepped = true;
      if (event.sequence != sequence) continue;
      EXPECT_NE(event.kind, StepEvent::Kind::kFailed) << sequence->status().message();
      if (event.kind != StepEvent::Kind::kPrefill) return event.token;
    }
    EXPECT_TRUE(stepped) << "the engine has nothing to compute";
    if (!stepped) return -1;
  }
}

std::string ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(file) << "cannot read " << path;
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

}  // namespace kvasm
