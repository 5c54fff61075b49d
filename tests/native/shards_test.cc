// A checkpoint in several files.

#include <gtest/gtest.h>

#include <cstring>

#include "formats/safetensors_index.h"
#include "model/gpt2_loader.h"
#include "random_model.h"

namespace kvasm {
namespace {

const char kConfig[] =
    R"({"n_layer":2,"n_head":2,"n_embd":6,"n_positions":9,"vocab_size":11})";

Gpt2Config Config() { return *ParseGpt2Config(kConfig); }

std::string Json(const std::map<std::string, std::string>& weight_map) {
  std::string text;
  for (const auto& [tensor, shard] : weight_map) {
    text += (text.empty() ? "\"" : ",\"") + tensor + "\":\"" + shard + "\"";
  }
  return R"({"metadata":{"total_size":1},"weight_map":{)" + text + "}}";
}

class ShardsTest : public testing::Test {
 protected:
  ShardsTest() {
    TestRandom random(21);
    tensors_ = RandomTensors(Config(), random);
    tensors_["lm_head.weight"] = {{11, 6}, RandomFloats(random, 66)};
    tensors_["h.1.attn.bias"] = {{1}, {1}};
    for (const auto& [name, tensor] : tensors_) {
      const std::string shard = std::string(1, "abc"[Uniform(random, 0, 2)]);
      index_[name] = shard;
      shards_[shard][name] = tensor;
    }
  }

  // Feeds the shards in the order of their names.
  Status Load(Gpt2Loader* loader) {
    KVASM_RETURN_IF_ERROR(loader->SetConfig(kConfig));
    KVASM_RETURN_IF_ERROR(loader->SetIndex(Json(index_)));
    for (const auto& [name, tensors] : shards_) {
      KVASM_RETURN_IF_ERROR(loader->NextFile(name));
      const std::vector<uint8_t> file = ToSafetensors(tensors);
      KVASM_RETURN_IF_ERROR(loader->Consume(file.data(), file.size()));
    }
    return loader->Finish();
  }

  void ExpectInvalid(const std::vector<std::string>& words) {
    Gpt2Loader loader;
    const Status status = Load(&loader);
    EXPECT_EQ(status.code(), StatusCode::kInvalidModel);
    for (const std::string& word : words) {
      EXPECT_NE(status.message().find(word), std::string::npos)
          << word << " in: " << status.message();
    }
    EXPECT_EQ(loader.Finish().message(), status.message());
  }

  TestTensors tensors_;
  std::map<std::string, std::string> index_;
  std::map<std::string, TestTensors> shards_;
};

TEST_F(ShardsTest, GiveTheWeightsThatOneFileGives) {
  Gpt2Loader sharded;
  ASSERT_TRUE(Load(&sharded).ok());
  EXPECT_EQ(sharded.shards(), (std::vector<std::string>{"a", "b", "c"}));
  Gpt2Loader single;
  ASSERT_TRUE(single.SetConfig(kConfig).ok());
  const std::vector<uint8_t> file = ToSafetensors(tensors_);
  ASSERT_TRUE(single.Consume(file.data(), file.size()).ok());
  ASSERT_TRUE(single.Finish().ok());

  std::vector<float> rows[2];
  size_t at = 0;
  for (Gpt2Loader* loader : {&sharded, &single}) {
    StatusOr<std::unique_ptr<Engine>> engine =
        Engine::Create(std::move(loader->weights()), {});
    ASSERT_TRUE(engine.ok());
    const std::vector<int32_t> prompt = {1, 10, 3, 7};
    auto sequence = (*engine)->StartSequence(prompt, {});
    ASSERT_TRUE(sequence.ok());
    NextToken(sequence->get());
    const float* logits = (*sequence)->logits();
    rows[at++].assign(logits, logits + 11);
  }
  EXPECT_EQ(std::memcmp(rows[0].data(), rows[1].data(), 11 * sizeof(float)), 0);
}

TEST_F(ShardsTest, AShardThatDoesNotComeIsAnErrorThatNamesItsTensorsB88) {
  shards_.erase(index_["h.0.mlp.c_fc.weight"]);
  ExpectInvalid({"none of the files", "(" + index_["h.0.mlp.c_fc.weight"] + ")"});
}

TEST_F(ShardsTest, ATensorThatIsListedAndNotThereIsAnErrorB88) {
  shards_[index_["lm_head.weight"]].erase("lm_head.weight");
  ExpectInvalid({"'lm_head.weight'", "(" + index_["lm_head.weight"] + ")"});
}

TEST_F(ShardsTest, AnIndexThatOmitsWhatTheModelNeedsIsAnErrorBeforeAnyShardB88) {
  index_.erase("h.1.ln_2.bias");
  Gpt2Loader loader;
  ASSERT_TRUE(loader.SetConfig(kConfig).ok());
  const Status status = loader.SetIndex(Json(index_));
  EXPECT_EQ(status.code(), StatusCode::kInvalidModel);
  EXPECT_NE(status.message().find("'h.1.ln_2.bias'"), std::string::npos);
}

TEST_F(ShardsTest, ATensorThatIsNotListedIsAnErrorOnlyIfTheModelWouldUseItB88) {
  shards_["b"]["score.weight"] = {{2}, {1, 2}};
  shards_["c"]["h.0.attn.bias"] = {{1}, {1}};
  Gpt2Loader loader;
  EXPECT_TRUE(Load(&loader).ok());
  index_.erase("lm_head.weight");
  ExpectInvalid({"'lm_head.weight'", "does not list it"});
}

TEST_F(ShardsTest, WhichFileAListedTensorIsInDoesNotMatter) {
  std::swap(shards_["a"], shards_["b"]);
  Gpt2Loader loader;
  EXPECT_TRUE(Load(&loader).ok());
}

TEST_F(ShardsTest, ATensorInTwoShardsIsAnError) {
  const std::string other = index_["ln_f.bias"] == "a" ? "b" : "a";
  shards_[other]["transformer.ln_f.bias"] = tensors_["ln_f.bias"];
  ExpectInvalid({"ln_f.bias", "two files", "'" + other + "'"});
}

TEST_F(ShardsTest, AShardThatEndsEarlyIsTruncatedWhenTheNextBegins) {
  Gpt2Loader loader;
  ASSERT_TRUE(loader.SetConfig(kConfig).ok());
  ASSERT_TRUE(loader.SetIndex(Json(index_)).ok());
  ASSERT_TRUE(loader.NextFile("a").ok());
  const std::vector<uint8_t> file = ToSafetensors(shards_["a"]);
  ASSERT_TRUE(loader.Consume(file.data(), file.size() - 1).ok());
  EXPECT_EQ(loader.NextFile("b").code(), StatusCode::kTruncated);
}

TEST_F(ShardsTest, ASecondFileNeedsAnIndex) {
  Gpt2Loader loader;
  ASSERT_TRUE(loader.SetConfig(kConfig).ok());
  const std::vector<uint8_t> file = ToSafetensors(tensors_);
  ASSERT_TRUE(loader.Consume(file.data(), file.size()).ok());
  ASSERT_TRUE(loader.NextFile("b").ok());
  EXPECT_EQ(loader.Consume(file.data(), file.size()).code(),
            StatusCode::kInvalidArgument);
}

TEST(SafetensorsIndexTest, MalformedOnesAreErrors) {
  for (const char* bad :
       {"", "[]", "{}", R"({"weight_map":[]})", R"({"weight_map":{}})",
        R"({"weight_map":{"a":1}})", R"({"weight_map":{"a":""}})",
        R"({"weight_map":{"a":"../secret"}})", R"({"weight_map":{"a":"/etc/passwd"}})",
        R"({"weight_map":{"a":"b\\c"}})", R"({"weight_map":{"a":".."}})",
        R"({"weight_map":{"a":"b\u0000"}})", R"({"weight_map":{"a":"x","a":"y"}})"}) {
    EXPECT_EQ(ParseSafetensorsIndex(bad).status().code(), StatusCode::kInvalidModel)
        << bad;
  }
}

TEST(SafetensorsIndexTest, ATensorWithAndWithoutThePrefixIsAnError) {
  Gpt2Loader loader;
  ASSERT_TRUE(loader.SetConfig(kConfig).ok());
  EXPECT_EQ(
      loader.SetIndex(Json({{"wte.weight", "a"}, {"transformer.wte.weight", "a"}}))
          .code(),
      StatusCode::kInvalidModel);
}

}  // namespace
}  // namespace kvasm
