// GPT-2s out of GGUF files.

#include <gtest/gtest.h>

#include <cstring>

#include "gguf_file.h"
#include "model/gpt2_loader.h"

namespace kvasm {
namespace {

StatusOr<std::unique_ptr<Engine>> Load(const std::vector<uint8_t>& file,
                                       WeightDtype dtype = WeightDtype::kF32) {
  constexpr size_t piece = 997;
  Gpt2Loader loader(dtype);
  for (size_t i = 0; i < file.size(); i += piece) {
    KVASM_RETURN_IF_ERROR(
        loader.Consume(file.data() + i, std::min(piece, file.size() - i)));
  }
  KVASM_RETURN_IF_ERROR(loader.Finish());
  return Engine::Create(std::move(loader.weights()), {});
}

Status LoadStatus(const GgufFile& file) { return Load(file.Bytes()).status(); }

std::vector<float> Logits(Engine* engine, const std::vector<int32_t>& prompt) {
  auto sequence = engine->StartSequence(prompt, {});
  EXPECT_TRUE(sequence.ok());
  NextToken(sequence->get());
  const float* logits = (*sequence)->logits();
  return {logits, logits + engine->config().vocab_size};
}

// Whatever the matrices are stored as in memory.
void ExpectSameLogits(const Gpt2Config& config, const TestTensors& tensors,
                      const GgufFile& file, TestRandom& random) {
  const std::vector<int32_t> prompt =
      RandomIds(random, Uniform(random, 1, config.n_positions), config.vocab_size);
  for (const WeightDtype dtype :
       {WeightDtype::kF32, WeightDtype::kQ8, WeightDtype::kQ4}) {
    auto expected = LoadEngine(config, ToSafetensors(tensors), {}, dtype);
    ASSERT_TRUE(expected.ok()) << expected.status().message();
    auto actual = Load(file.Bytes(), dtype);
    ASSERT_TRUE(actual.ok()) << actual.status().message();
    const std::vector<float> a = Logits(expected->get(), prompt);
    const std::vector<float> b = Logits(actual->get(), prompt);
    EXPECT_EQ(std::memcmp(a.data(), b.data(), a.size() * sizeof(float)), 0);
  }
}

TEST(GgufModelTest, F32GivesTheBitsThatSafetensorsGivesB78) {
  TestRandom random(41);
  for (int i = 0; i < 40; ++i) {
    Gpt2Config config = RandomConfig(random);
    // Also a square c_proj, whose shape tells nothing.
    if (i % 2 == 0) config.n_inner = config.n_embd;
    TestTensors tensors = RandomTensors(config, random);
    const GgufFile file = ToGguf(config, &tensors);
    ExpectSameLogits(config, tensors, file, random);
  }
}

TEST(GgufModelTest, QuantisedFilesGiveTheBitsOfTheirWeightsAsFloats) {
  TestRandom random(42);
  for (const GgufType type :
       {GgufType::kF16, GgufType::kBf16, GgufType::kQ8_0, GgufType::kQ4_0,
        GgufType::kQ4_1, GgufType::kQ5_0, GgufType::kQ5_1, GgufType::kQ6_K}) {
    Gpt2Config config = RandomConfig(random);
    config.n_layer = 2;
    config.n_head = config.n_kv_head = 4;
    config.n_embd = type == GgufType::kQ6_K ? 256 : 64;
    config.n_inner = type == GgufType::kQ6_K ? 256 : 96;
    TestTensors tensors = RandomTensors(config, random);
    const GgufFile file = ToGguf(config, &tensors, type, &random);
    ExpectSameLogits(config, tensors, file, random);
  }
}

TEST(GgufModelTest, OutputWeightIsUsedWhereItIsThereB76) {
  TestRandom random(43);
  const Gpt2Config config = RandomConfig(random);
  TestTensors tensors = RandomTensors(config, random);
  tensors["lm_head.weight"] = {{config.vocab_size, config.n_embd},
                               RandomFloats(random, config.vocab_size * config.n_embd)};
  const GgufFile untied = ToGguf(config, &tensors);
  ASSERT_EQ(untied.tensors.back().name, "output.weight");
  ExpectSameLogits(config, tensors, untied, random);
  GgufFile tied = untied;
  tied.tensors.pop_back();
  tensors.erase("lm_head.weight");
  ExpectSameLogits(config, tensors, tied, random);
}

TEST(GgufModelTest, AConfigThatWasGivenGivesWay) {
  TestRandom random(44);
  const Gpt2Config config = RandomConfig(random);
  TestTensors tensors = RandomTensors(config, random);
  const std::vector<uint8_t> file = ToGguf(config, &tensors).Bytes();
  Gpt2Loader loader;
  ASSERT_TRUE(loader
                  .SetConfig(R"({"n_layer":9,"n_head":2,"n_embd":6,"n_positions":9,)"
                             R"("vocab_size":11})")
                  .ok());
  ASSERT_TRUE(loader.Consume(file.data(), file.size()).ok());
  EXPECT_EQ(loader.config()->n_layer, config.n_layer);
  EXPECT_EQ(loader.config()->vocab_size, config.vocab_size);
  EXPECT_TRUE(loader.Finish().ok());
}

class GgufFileTest : public testing::Test {
 protected:
  GgufFileTest() {
    TestRandom random(45);
    config_ = RandomConfig(random);
    config_.n_layer = 2;
    tensors_ = RandomTensors(config_, random);
    file_ = ToGguf(config_, &tensors_);
  }

  // Replaces a key's value, or removes it.
  GgufFile With(const std::string& key, uint32_t type, const std::string& value) {
    GgufFile file = Without(key);
    file.Add(key, type, value);
    return file;
  }
  GgufFile Without(const std::string& key) {
    GgufFile file = file_;
    std::erase_if(file.pairs, [&](const std::string& pair) {
      return pair.substr(0, 8 + key.size()) == GgufText(key);
    });
    return file;
  }

  Gpt2Config config_;
  TestTensors tensors_;
  GgufFile file_;
};

TEST_F(GgufFileTest, EveryTensorMustBeThereInItsShape) {
  ASSERT_TRUE(LoadStatus(file_).ok());
  for (size_t t = 0; t < file_.tensors.size(); ++t) {
    const std::string name = file_.tensors[t].name;
    GgufFile file = file_;
    file.tensors.erase(file.tensors.begin() + static_cast<std::ptrdiff_t>(t));
    Status status = LoadStatus(file);
    EXPECT_EQ(status.code(), StatusCode::kInvalidModel);
    EXPECT_NE(status.message().find(name), std::string::npos) << status.message();
    file = file_;
    file.tensors[t].dims.insert(file.tensors[t].dims.begin(), 1);
    status = LoadStatus(file);
    EXPECT_EQ(status.code(), StatusCode::kInvalidModel);
    EXPECT_NE(status.message().find(name), std::string::npos) << status.message();
  }
}

TEST_F(GgufFileTest, UnknownTensorsAreErrorsInsideALayerOnly) {
  const auto with = [&](const char* name) {
    GgufFile file = file_;
    file.tensors.push_back({name, {1}, 0, std::string(4, '\0')});
    return LoadStatus(file).code();
  };
  EXPECT_EQ(with("rope_freqs.weight"), StatusCode::kOk);
  EXPECT_EQ(with("score.weight"), StatusCode::kOk);
  EXPECT_EQ(with("blk.0.attn_q_norm.weight"), StatusCode::kInvalidModel);
  EXPECT_EQ(with("blk.7.attn_norm.weight"), StatusCode::kInvalidModel);
  // Hugging Face's names mean nothing here.
  EXPECT_EQ(with("wte.weight"), StatusCode::kOk);
}

TEST_F(GgufFileTest, HuggingFaceNamesAreNotThoseOfGguf) {
  GgufFile file = file_;
  for (GgufFileTensor& tensor : file.tensors) {
    if (tensor.name == "output_norm.bias") tensor.name = "ln_f.bias";
  }
  EXPECT_EQ(LoadStatus(file).code(), StatusCode::kInvalidModel);
}

TEST_F(GgufFileTest, OtherArchitecturesAreNamed) {
  const Status status = LoadStatus(With("general.architecture", 8, GgufText("llama")));
  EXPECT_EQ(status.code(), StatusCode::kUnsupported);
  EXPECT_NE(status.message().find("'llama'"), std::string::npos);
  EXPECT_EQ(LoadStatus(Without("general.architecture")).code(),
            StatusCode::kInvalidConfig);
  EXPECT_EQ(LoadStatus(With("split.count", 2, Little<uint16_t>(3))).code(),
            StatusCode::kUnsupported);
}

TEST_F(GgufFileTest, KeysThatAreMissingOrMalformedAreNamed) {
  for (const char* key : {"gpt2.context_length", "gpt2.embedding_length",
                          "gpt2.block_count", "gpt2.attention.head_count"}) {
    const std::string name = std::string("'") + key + "'";
    for (const GgufFile& file :
         {Without(key), With(key, 4, Little<uint32_t>(0)),
          With(key, 4, Little<uint32_t>(~0u)), With(key, 5, Little<int32_t>(-1)),
          With(key, 6, Little(1.0f)), With(key, 8, GgufText("1")),
          With(key, 9, Little<uint32_t>(4) + Little<uint64_t>(1) + Little(1u))}) {
      const Status status = LoadStatus(file);
      EXPECT_EQ(status.code(), StatusCode::kInvalidConfig);
      EXPECT_NE(status.message().find(name), std::string::npos) << status.message();
    }
  }
  const char* epsilon = "gpt2.attention.layer_norm_epsilon";
  for (const float bad : {0.0f, -1.0f, 2.0f, std::bit_cast<float>(0x7FC00000u)}) {
    EXPECT_EQ(LoadStatus(With(epsilon, 6, Little(bad))).code(),
              StatusCode::kInvalidConfig);
  }
  EXPECT_TRUE(LoadStatus(Without(epsilon)).ok());
  EXPECT_TRUE(LoadStatus(With(epsilon, 12, Little(1e-4))).ok());
}

TEST_F(GgufFileTest, HeadsMustDivide) {
  const uint32_t n_embd = static_cast<uint32_t>(config_.n_embd);
  EXPECT_EQ(LoadStatus(With("gpt2.attention.head_count", 4, Little(n_embd + 1))).code(),
            StatusCode::kInvalidConfig);
  EXPECT_EQ(LoadStatus(With("gpt2.attention.head_count_kv", 4,
                            Little(static_cast<uint32_t>(config_.n_head + 1))))
                .code(),
            StatusCode::kInvalidConfig);
}

TEST_F(GgufFileTest, MoreTokensThanRowsAreAnErrorAndFewerArePadding) {
  GgufFile file = file_;
  file.AddTexts("tokenizer.ggml.tokens", std::vector<std::string>(config_.vocab_size));
  EXPECT_TRUE(LoadStatus(file).ok());
  file = file_;
  file.AddTexts("tokenizer.ggml.tokens",
                std::vector<std::string>(config_.vocab_size + 1));
  EXPECT_EQ(LoadStatus(file).code(), StatusCode::kInvalidModel);
}

TEST_F(GgufFileTest, AClaimOfAMillionLayersIsRefusedAtOnce) {
  EXPECT_EQ(LoadStatus(With("gpt2.block_count", 4, Little(1u << 24))).code(),
            StatusCode::kInvalidModel);
}

TEST_F(GgufFileTest, TheMetadataIsThereOnceTheHeaderIsThrough) {
  file_.AddTexts("tokenizer.ggml.tokens", {"a", "b"});
  const std::vector<uint8_t> bytes = file_.Bytes();
  Gpt2Loader loader;
  EXPECT_EQ(loader.gguf(), nullptr);
  ASSERT_TRUE(loader.Consume(bytes.data(), 30).ok());
  EXPECT_EQ(loader.gguf(), nullptr);
  EXPECT_EQ(loader.config(), nullptr);
  ASSERT_TRUE(loader.Consume(bytes.data() + 30, bytes.size() - 30).ok());
  ASSERT_NE(loader.gguf(), nullptr);
  EXPECT_EQ(FindGguf<GgufStrings>(*loader.gguf(), "tokenizer.ggml.tokens")->bytes,
            "ab");
  ASSERT_NE(loader.config(), nullptr);
  EXPECT_EQ(loader.config()->n_embd, config_.n_embd);
}

TEST_F(GgufFileTest, NoFileMayFollowAndItIsNoShard) {
  const std::vector<uint8_t> bytes = file_.Bytes();
  Gpt2Loader loader;
  ASSERT_TRUE(loader.Consume(bytes.data(), bytes.size()).ok());
  EXPECT_EQ(loader.NextFile("b").code(), StatusCode::kInvalidArgument);

  std::string map;
  for (const auto& [name, tensor] : tensors_) {
    map += (map.empty() ? "\"" : ",\"") + name + "\":\"a\"";
  }
  const auto n = [](size_t size) { return std::to_string(size); };
  Gpt2Loader sharded;
  ASSERT_TRUE(sharded
                  .SetConfig(R"({"n_layer":2,"n_head":)" + n(config_.n_head) +
                             R"(,"n_embd":)" + n(config_.n_embd) +
                             R"(,"n_positions":)" + n(config_.n_positions) +
                             R"(,"vocab_size":)" + n(config_.vocab_size) + "}")
                  .ok());
  ASSERT_TRUE(sharded.SetIndex(R"({"weight_map":{)" + map + "}}").ok());
  ASSERT_TRUE(sharded.NextFile("a").ok());
  const Status status = sharded.Consume(bytes.data(), bytes.size());
  EXPECT_EQ(status.code(), StatusCode::kInvalidModel);
  EXPECT_NE(status.message().find("'a' is a GGUF file"), std::string::npos);
}

TEST(Gpt2LoaderTest, SafetensorsNeedAConfig) {
  Gpt2Loader loader;
  const std::vector<uint8_t> file = ToSafetensors({});
  EXPECT_EQ(loader.Consume(file.data(), file.size()).code(),
            StatusCode::kInvalidConfig);
  Gpt2Loader sharded;
  EXPECT_EQ(sharded.SetIndex("{}").code(), StatusCode::kInvalidConfig);
}

TEST(Gpt2LoaderTest, AFileTooShortToTellWhatItIsIsTruncatedB87) {
  for (const std::string text : {"", "G", "GGU", "GGUF"}) {
    Gpt2Loader loader;
    ASSERT_TRUE(
        loader.Consume(reinterpret_cast<const uint8_t*>(text.data()), text.size())
            .ok());
    EXPECT_EQ(loader.Finish().code(), StatusCode::kTruncated) << text;
  }
}

TEST(Gpt2LoaderTest, WhatIsServedInPlaceOfWeightsIsNamedByThePieceB89B90) {
  const auto message = [](const std::string& text) {
    Gpt2Loader loader;
    Status status;
    for (const char& c : text) {
      status = loader.Consume(reinterpret_cast<const uint8_t*>(&c), 1);
    }
    EXPECT_EQ(status.code(), StatusCode::kInvalidModel);
    return status.message();
  };
  EXPECT_NE(message("version https://git-lfs.github.com/spec/v1\n").find("Git LFS"),
            std::string::npos);
  for (const char* page : {"<!doctype html>", "\n\n <html lang=\"en\">",
                           "\xEF\xBB\xBF<!DOCTYPE html>", "<?xml version=\"1.0\"?>"}) {
    EXPECT_NE(message(page).find("HTML"), std::string::npos) << page;
  }
  EXPECT_NE(message(R"({"error":"Entry not found"})").find("JSON"), std::string::npos);
}

}  // namespace
}  // namespace kvasm
