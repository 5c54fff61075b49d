#include "formats/safetensors.h"

#include <gtest/gtest.h>

#include <cstring>

#include "model/gpt2_checkpoint.h"
#include "random_model.h"

namespace kvasm {
namespace {

Status Read(const std::vector<uint8_t>& file, size_t piece = 7) {
  CollectingSink sink;
  return ReadSafetensors(file, piece, &sink);
}

// A file with one entry "t": the given JSON, and `data_bytes` bytes.
Status ReadEntry(const std::string& json, size_t data_bytes) {
  return Read(
      SafetensorsFile(R"({"t":)" + json + "}", std::vector<uint8_t>(data_bytes)));
}

TEST(SafetensorsTest, PiecesOfAnySizeGiveTheSameElements) {
  TestRandom random(1);
  TestTensors tensors;
  tensors["a"] = {{3, 5}, RandomFloats(random, 15)};
  tensors["b"] = {{}, RandomFloats(random, 1)};
  tensors["c"] = {{0, 7}, {}};
  tensors["d"] = {{5000}, RandomFloats(random, 5000)};
  const std::vector<uint8_t> file = ToSafetensors(tensors);
  for (const size_t piece : {1u, 2u, 3u, 5u, 8u, 64u, 1001u, 100000u}) {
    CollectingSink sink;
    ASSERT_TRUE(ReadSafetensors(file, piece, &sink).ok());
    ASSERT_EQ(sink.tensors.size(), 4u);
    for (const auto& [name, tensor] : tensors) {
      EXPECT_EQ(sink.tensors[name].shape, tensor.shape);
      EXPECT_EQ(sink.tensors[name].elements, tensor.elements)
          << name << " by " << piece;
    }
  }
}

TEST(SafetensorsTest, UnalignedTensorsOfMixedDtypesHaveTheRightValuesB82) {
  // An odd header, and three bytes of U8 ahead of the floats.
  const std::vector<uint8_t> file =
      SafetensorsFile(R"({"u":{"dtype":"U8","shape":[3],"data_offsets":[0,3]},)"
                      R"("f":{"dtype":"F32","shape":[1],"data_offsets":[3,7]},)"
                      R"("h":{"dtype":"F16","shape":[2],"data_offsets":[7,11]},)"
                      R"("b":{"dtype":"BF16","shape":[1],"data_offsets":[11,13]}} )",
                      {1, 2, 3, 0, 0, 0x80, 0x3F, 0x01, 0x00, 0x00, 0xBC, 0x49, 0xC0});
  for (size_t piece = 1; piece < 20; ++piece) {
    CollectingSink sink;
    ASSERT_TRUE(ReadSafetensors(file, piece, &sink).ok());
    EXPECT_EQ(sink.tensors["f"].elements, std::vector<float>{1.0f});
    EXPECT_EQ(sink.tensors["h"].elements, (std::vector<float>{0x1p-24f, -1.0f}));
    EXPECT_EQ(sink.tensors["b"].elements, std::vector<float>{-3.140625f});
  }
}

TEST(SafetensorsTest, OverlapsAndGapsAreErrorsAndOrderIsFreeB83) {
  const std::string two = R"({"k":{"dtype":"U8","shape":[2],"data_offsets":[%]},)"
                          R"("v":{"dtype":"U8","shape":[2],"data_offsets":[$]}})";
  const auto read = [&](const char* k, const char* v, size_t data) {
    std::string header = two;
    header.replace(header.find('%'), 1, k);
    header.replace(header.find('$'), 1, v);
    return Read(SafetensorsFile(header, std::vector<uint8_t>(data)));
  };
  EXPECT_TRUE(read("0,2", "2,4", 4).ok());
  EXPECT_TRUE(read("2,4", "0,2", 4).ok());
  EXPECT_EQ(read("0,2", "0,2", 2).code(), StatusCode::kInvalidModel);
  EXPECT_EQ(read("0,2", "1,3", 3).code(), StatusCode::kInvalidModel);
  EXPECT_EQ(read("0,2", "3,5", 5).code(), StatusCode::kInvalidModel);
  EXPECT_EQ(read("1,3", "3,5", 5).code(), StatusCode::kInvalidModel);
  EXPECT_EQ(read("0,2", "2,4", 5).code(), StatusCode::kInvalidModel);
}

TEST(SafetensorsTest, BadEntriesAreErrorsB86) {
  const auto offsets = [](const std::string& o) {
    return ReadEntry(R"({"dtype":"U8","shape":[4],"data_offsets":)" + o + "}", 4)
        .code();
  };
  EXPECT_EQ(offsets("[0,4]"), StatusCode::kOk);
  for (const char* bad :
       {"[]", "[4]", "[8,4]", "[-1,4]", R"(["0","4"])", "[0,3]", "[0,5]", "[0,4,8]",
        "[0.5,4]", "null", "[0,18446744073709551616]"}) {
    EXPECT_EQ(offsets(bad), StatusCode::kInvalidModel) << bad;
  }
  const auto shape = [](const std::string& s) {
    return ReadEntry(R"({"dtype":"F32","shape":)" + s + R"(,"data_offsets":[0,4]})", 4)
        .code();
  };
  EXPECT_EQ(shape("[1]"), StatusCode::kOk);
  // 2^63 * 2 wraps to 0, and 2^62 * 4 + 1 elements to 4 bytes.
  for (const char* bad : {"[-1]", "[1.0]", "1", "[\"1\"]", "[2]", "null",
                          "[9223372036854775808,2]", "[4611686018427387905]"}) {
    EXPECT_EQ(shape(bad), StatusCode::kInvalidModel) << bad;
  }
  EXPECT_EQ(ReadEntry(R"({"dtype":"Q7","shape":[4],"data_offsets":[0,4]})", 4).code(),
            StatusCode::kUnsupported);
  EXPECT_EQ(ReadEntry(R"({"dtype":7,"shape":[4],"data_offsets":[0,4]})", 4).code(),
            StatusCode::kInvalidModel);
  EXPECT_EQ(ReadEntry("[]", 0).code(), StatusCode::kInvalidModel);
}

TEST(SafetensorsTest, ATensorNamedTwiceIsAnError) {
  const std::string t = R"("t":{"dtype":"U8","shape":[0],"data_offsets":[0,0]})";
  EXPECT_EQ(Read(SafetensorsFile("{" + t + "," + t + "}")).code(),
            StatusCode::kInvalidModel);
}

TEST(SafetensorsTest, HeadersThatAreNoJsonObjectAreErrors) {
  for (const char* header : {"[]", "{", "  ", "nonsense", "{}x", "{\"a\":\"\xFF\"}"}) {
    EXPECT_EQ(Read(SafetensorsFile(header)).code(), StatusCode::kInvalidModel)
        << header;
  }
  EXPECT_EQ(Read(std::vector<uint8_t>(8, 0)).code(), StatusCode::kInvalidModel);
  EXPECT_EQ(Read(std::vector<uint8_t>(8, 0xFF)).code(), StatusCode::kInvalidModel);
}

TEST(SafetensorsTest, AFileThatEndsEarlyIsTruncatedWhereverItEndsB87) {
  TestTensors tensors;
  tensors["a"] = {{4}, {1, 2, 3, 4}};
  const std::vector<uint8_t> file = ToSafetensors(tensors);
  for (size_t end = 0; end < file.size(); ++end) {
    const std::vector<uint8_t> cut(file.begin(),
                                   file.begin() + static_cast<std::ptrdiff_t>(end));
    CollectingSink sink;
    SafetensorsReader reader(&sink);
    ASSERT_TRUE(reader.Consume(cut.data(), cut.size()).ok());
    EXPECT_EQ(reader.Finish().code(), StatusCode::kTruncated) << end;
  }
}

TEST(SafetensorsTest, WhatIsServedInPlaceOfWeightsIsNamedB89B90) {
  const auto message = [](const std::string& text) {
    return Read({text.begin(), text.end()}).message();
  };
  EXPECT_NE(
      message("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n")
          .find("Git LFS"),
      std::string::npos);
  EXPECT_NE(message("<!doctype html><title>Not found</title>").find("HTML"),
            std::string::npos);
  EXPECT_NE(message(std::string("GGUF\3\0\0\0\0\0\0\0", 12)).find("GGUF"),
            std::string::npos);
}

TEST(SafetensorsTest, AnErrorStays) {
  CollectingSink sink;
  SafetensorsReader reader(&sink);
  const std::vector<uint8_t> bad(8, 0xFF);
  const Status first = reader.Consume(bad.data(), bad.size());
  EXPECT_EQ(reader.Consume(bad.data(), 1).message(), first.message());
  EXPECT_EQ(reader.Finish().message(), first.message());
}

// The checkpoint's tensors against the config.

class CheckpointTest : public testing::Test {
 protected:
  CheckpointTest() {
    config_ = RandomConfig(random_);
    config_.n_layer = 2;
    tensors_ = RandomTensors(config_, random_);
  }

  Status Load() { return LoadEngine(config_, ToSafetensors(tensors_)).status(); }

  TestRandom random_{11};
  Gpt2Config config_;
  TestTensors tensors_;
};

TEST_F(CheckpointTest, EveryTensorThatTheConfigCallsForMustBeThere) {
  ASSERT_TRUE(Load().ok());
  for (const auto& [name, tensor] : TestTensors(tensors_)) {
    tensors_.erase(name);
    const Status status = Load();
    EXPECT_EQ(status.code(), StatusCode::kInvalidModel);
    EXPECT_NE(status.message().find(name), std::string::npos) << status.message();
    tensors_[name] = tensor;
  }
}

TEST_F(CheckpointTest, ShapesMustBeWhatTheConfigCallsFor) {
  for (const auto& [name, tensor] : TestTensors(tensors_)) {
    tensors_[name].shape.push_back(1);
    const Status status = Load();
    EXPECT_EQ(status.code(), StatusCode::kInvalidModel);
    EXPECT_NE(status.message().find(name), std::string::npos) << status.message();
    tensors_[name] = tensor;
  }
}

TEST_F(CheckpointTest, UnknownTensorsAreErrorsInsideALayerOnly) {
  tensors_["score.weight"] = {{1}, {1}};
  tensors_["h.0.attn.bias"] = {{1}, {1}};
  tensors_["h.1.attn.masked_bias"] = {{}, {1}};
  EXPECT_TRUE(Load().ok());
  tensors_["h.1.attn.c_attn.lora_A"] = {{1}, {1}};
  EXPECT_EQ(Load().code(), StatusCode::kInvalidModel);
  tensors_.erase("h.1.attn.c_attn.lora_A");
  tensors_["h.2.ln_1.weight"] = {{1}, {1}};
  EXPECT_EQ(Load().code(), StatusCode::kInvalidModel);
}

TEST_F(CheckpointTest, ATensorWithAndWithoutThePrefixIsAnError) {
  tensors_["transformer.ln_f.bias"] = tensors_["ln_f.bias"];
  EXPECT_EQ(Load().code(), StatusCode::kInvalidModel);
}

TEST_F(CheckpointTest, AWantedTensorOfIntegersIsUnsupported) {
  std::vector<uint8_t> file = ToSafetensors(tensors_);
  std::string text(file.begin(), file.end());
  const size_t at = text.find("F32", text.find("\"ln_f.bias\""));
  std::memcpy(file.data() + at, "I32", 3);
  EXPECT_EQ(LoadEngine(config_, file).status().code(), StatusCode::kUnsupported);
}

TEST_F(CheckpointTest, AConfigThatClaimsAMillionLayersIsRefusedAtOnce) {
  config_.n_layer = 1 << 24;
  EXPECT_EQ(Load().code(), StatusCode::kInvalidModel);
}

}  // namespace
}  // namespace kvasm
