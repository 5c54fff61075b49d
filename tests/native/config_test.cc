#include <gtest/gtest.h>

#include <string>

#include "model/gpt2_config.h"

namespace kvasm {
namespace {

constexpr char kSmall[] =
    R"({"model_type": "gpt2", "n_layer": 2, "n_head": 6, "n_embd": 48, "n_positions": 32,
        "vocab_size": 100)";

StatusOr<Gpt2Config> Parse(const std::string& more) {
  return ParseGpt2Config(kSmall + more + "}");
}

TEST(ConfigTest, ReadsTheNamesOfHuggingFaceAndTheirDefaults) {
  const StatusOr<Gpt2Config> config = Parse("");
  ASSERT_TRUE(config.ok()) << config.status().message();
  EXPECT_EQ(config.value().n_layer, 2u);
  EXPECT_EQ(config.value().n_head, 6u);
  EXPECT_EQ(config.value().n_kv_head, 6u);
  EXPECT_EQ(config.value().head_dim(), 8u);
  EXPECT_EQ(config.value().n_inner, 192u);
  EXPECT_FLOAT_EQ(config.value().layer_norm_epsilon, 1e-5f);
  EXPECT_EQ(config.value().eos_token_id, -1);
}

TEST(ConfigTest, ReadsWhatIsGiven) {
  const StatusOr<Gpt2Config> config = Parse(
      R"(, "n_kv_head": 2, "n_inner": 50, "layer_norm_epsilon": 1e-3, "eos_token_id": 99)");
  ASSERT_TRUE(config.ok()) << config.status().message();
  EXPECT_EQ(config.value().n_kv_head, 2u);
  EXPECT_EQ(config.value().n_qkv(), (6u + 2 * 2) * 8);
  EXPECT_EQ(config.value().n_inner, 50u);
  EXPECT_FLOAT_EQ(config.value().layer_norm_epsilon, 1e-3f);
  EXPECT_EQ(config.value().eos_token_id, 99);
}

TEST(ConfigTest, AnEndOfTextIdBeyondTheVocabularyIsNone) {
  EXPECT_EQ(Parse(R"(, "eos_token_id": 50256)").value().eos_token_id, -1);
}

struct BadConfig {
  const char* more;
  StatusCode code;
  const char* named;
};

class BadConfigTest : public testing::TestWithParam<BadConfig> {};

TEST_P(BadConfigTest, IsRefusedNamingTheKey) {
  const StatusOr<Gpt2Config> config = Parse(GetParam().more);
  ASSERT_FALSE(config.ok());
  EXPECT_EQ(config.status().code(), GetParam().code);
  EXPECT_NE(config.status().message().find(GetParam().named), std::string::npos)
      << config.status().message();
}

// A later duplicate is never looked at, so each case adds a key that kSmall lacks.
INSTANTIATE_TEST_SUITE_P(
    Cases, BadConfigTest,
    testing::Values(
        BadConfig{R"(, "n_kv_head": 4)", StatusCode::kInvalidConfig, "n_kv_head"},
        BadConfig{R"(, "n_kv_head": 0)", StatusCode::kInvalidConfig, "n_kv_head"},
        BadConfig{R"(, "n_inner": -1)", StatusCode::kInvalidConfig, "n_inner"},
        BadConfig{R"(, "n_inner": 1.5)", StatusCode::kInvalidConfig, "n_inner"},
        BadConfig{R"(, "n_inner": 4294967295)", StatusCode::kInvalidConfig, "n_inner"},
        BadConfig{R"(, "layer_norm_epsilon": 0)", StatusCode::kInvalidConfig,
                  "layer_norm_epsilon"},
        BadConfig{R"(, "layer_norm_epsilon": "x")", StatusCode::kInvalidConfig,
                  "layer_norm_epsilon"},
        BadConfig{R"(, "eos_token_id": "x")", StatusCode::kInvalidConfig,
                  "eos_token_id"},
        BadConfig{R"(, "activation_function": "gelu")", StatusCode::kUnsupported,
                  "activation_function"},
        BadConfig{R"(, "scale_attn_weights": false)", StatusCode::kUnsupported,
                  "scale_attn_weights"},
        BadConfig{R"(, "scale_attn_by_inverse_layer_idx": true)",
                  StatusCode::kUnsupported, "scale_attn_by_inverse_layer_idx"}));

TEST(ConfigTest, AnotherModelTypeIsUnsupported) {
  const StatusOr<Gpt2Config> config = ParseGpt2Config(R"({"model_type": "llama"})");
  ASSERT_FALSE(config.ok());
  EXPECT_EQ(config.status().code(), StatusCode::kUnsupported);
}

TEST(ConfigTest, WhatIsNoJsonObjectIsInvalid) {
  for (const char* json : {"", "[]", "{", "{\"n_layer\": }", "<html>", "null"}) {
    EXPECT_EQ(ParseGpt2Config(json).status().code(), StatusCode::kInvalidConfig)
        << json;
  }
  // Nesting costs no stack.
  EXPECT_FALSE(ParseGpt2Config(std::string(1'000'000, '[')).ok());
}

}  // namespace
}  // namespace kvasm
