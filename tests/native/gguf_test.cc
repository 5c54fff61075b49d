#include "formats/gguf.h"

#include <gtest/gtest.h>

#include <cstring>

#include "gguf_file.h"

namespace kvasm {
namespace {

// Collects all tensors, whatever their type.
class GgufSink : public CollectingSink {
 public:
  Status OnTensors(const std::vector<TensorInfo>& infos,
                   std::vector<bool>* wanted) override {
    KVASM_RETURN_IF_ERROR(CollectingSink::OnTensors(infos, wanted));
    wanted->assign(infos.size(), true);
    return OkStatus();
  }
};

Status Read(const std::vector<uint8_t>& file, size_t piece = 7) {
  GgufSink sink;
  return ReadGguf(file, piece, &sink);
}

Status Read(const std::string& file) {
  return Read(std::vector<uint8_t>(file.begin(), file.end()));
}

// A file with one tensor of 64 floats, and what `change` does to it.
template <class Change>
Status ReadChanged(Change change) {
  GgufFile file;
  file.AddText("general.architecture", "gpt2");
  file.tensors.push_back({"t", {64}, 0, std::string(256, '\0')});
  change(&file);
  return Read(file.Bytes());
}

std::string Start(uint64_t tensors, uint64_t pairs) {
  return "GGUF" + Little<uint32_t>(3) + Little(tensors) + Little(pairs);
}

constexpr GgufType kTypes[] = {GgufType::kF32,  GgufType::kF16,  GgufType::kBf16,
                               GgufType::kQ4_0, GgufType::kQ4_1, GgufType::kQ5_0,
                               GgufType::kQ5_1, GgufType::kQ8_0, GgufType::kQ6_K};

TEST(GgufTest, EveryTypeDecodesToTheBitsOfTheNaiveTwinInPiecesOfAnySize) {
  TestRandom random(31);
  for (const uint32_t version : {2u, 3u}) {
    for (const uint64_t alignment : {1u, 8u, 32u, 256u}) {
      GgufFile file;
      file.version = version;
      file.alignment = alignment;
      file.AddUint32("general.alignment", static_cast<uint32_t>(alignment));
      // A skipped array at the very end of the pairs.
      file.Add("x", 9, Little<uint32_t>(4) + Little<uint64_t>(2) + Little<uint64_t>(0));
      for (const GgufType type : kTypes) {
        file.tensors.push_back({std::to_string(static_cast<int>(type)),
                                {512, 9},
                                static_cast<uint32_t>(type),
                                RandomEncoded(random, type, 512 * 9)});
      }
      for (const size_t piece : {1u, 17u, 1000u, 1000000u}) {
        GgufSink sink;
        ASSERT_TRUE(ReadGguf(file.Bytes(), piece, &sink).ok());
        for (size_t t = 0; t < file.tensors.size(); ++t) {
          const std::vector<float> expected =
              DecodeNaively(kTypes[t], file.tensors[t].bytes);
          const TestTensor& actual = sink.tensors[file.tensors[t].name];
          // The other way round than in the file.
          EXPECT_EQ(actual.shape, (std::vector<uint64_t>{9, 512}));
          ASSERT_EQ(actual.elements.size(), expected.size());
          EXPECT_EQ(std::memcmp(actual.elements.data(), expected.data(),
                                expected.size() * sizeof(float)),
                    0)
              << file.tensors[t].name << " by " << piece;
        }
      }
    }
  }
}

TEST(GgufTest, QuantisedValuesAreThoseOfTheFormat) {
  // d = 0.5, d = 0.5 and m = -2: byte i holds i in its lower half, 15 - i in its upper.
  std::string nibbles;
  for (int i = 0; i < 16; ++i) nibbles.push_back(static_cast<char>(i | (15 - i) << 4));
  const std::string half = Little<uint16_t>(0x3800);
  GgufFile file;
  file.tensors.push_back({"q4_0", {32}, 2, half + nibbles});
  file.tensors.push_back({"q4_1", {32}, 3, half + Little<uint16_t>(0xC000) + nibbles});
  std::string bytes;
  for (int i = 0; i < 32; ++i) bytes.push_back(static_cast<char>(i - 16));
  file.tensors.push_back({"q8_0", {32}, 8, half + bytes});
  GgufSink sink;
  ASSERT_TRUE(ReadGguf(file.Bytes(), 5, &sink).ok());
  for (int i = 0; i < 32; ++i) {
    const float nibble = static_cast<float>(i < 16 ? i : 31 - i);
    const size_t at = static_cast<size_t>(i);
    EXPECT_EQ(sink.tensors["q4_0"].elements[at], 0.5f * (nibble - 8));
    EXPECT_EQ(sink.tensors["q4_1"].elements[at], 0.5f * nibble - 2);
    EXPECT_EQ(sink.tensors["q8_0"].elements[at], 0.5f * static_cast<float>(i - 16));
  }
}

TEST(GgufTest, MetadataOfEveryTypeIsRead) {
  GgufFile file;
  file.Add("u8", 0, Little<uint8_t>(200));
  file.Add("i8", 1, Little<int8_t>(-3));
  file.Add("u16", 2, Little<uint16_t>(60000));
  file.Add("i16", 3, Little<int16_t>(-300));
  file.Add("u32", 4, Little<uint32_t>(4000000000));
  file.Add("i32", 5, Little<int32_t>(-70000));
  file.Add("f32", 6, Little(0.5f));
  file.Add("bool", 7, Little<uint8_t>(1));
  file.AddText("text", "");
  file.Add("u64", 10, Little<uint64_t>(~uint64_t{0}));
  file.Add("i64", 11, Little<int64_t>(-1));
  file.Add("f64", 12, Little(-0.25));
  file.AddTexts("tokenizer.ggml.tokens", {"a", "", "bc"});
  file.AddTexts("others", {"a", "b"});
  file.Add("tokenizer.ggml.token_type", 9,
           Little<uint32_t>(5) + Little<uint64_t>(2) + Little<int32_t>(1) +
               Little<int32_t>(-2));
  const std::vector<uint8_t> bytes = file.Bytes();
  for (const size_t piece : {size_t{1}, bytes.size()}) {
    GgufHeaderParser parser;
    size_t used = 0;
    for (size_t i = 0; i < bytes.size() && !parser.done(); i += piece) {
      ASSERT_TRUE(parser.Consume(bytes.data() + i, piece, &used).ok());
    }
    ASSERT_TRUE(parser.done());
    const GgufMetadata& m = parser.metadata();
    EXPECT_EQ(*FindGguf<uint64_t>(m, "u8"), 200u);
    EXPECT_EQ(*FindGguf<int64_t>(m, "i8"), -3);
    EXPECT_EQ(*FindGguf<uint64_t>(m, "u16"), 60000u);
    EXPECT_EQ(*FindGguf<int64_t>(m, "i16"), -300);
    EXPECT_EQ(*FindGguf<uint64_t>(m, "u32"), 4000000000u);
    EXPECT_EQ(*FindGguf<int64_t>(m, "i32"), -70000);
    EXPECT_EQ(*FindGguf<double>(m, "f32"), 0.5);
    EXPECT_EQ(*FindGguf<bool>(m, "bool"), true);
    EXPECT_EQ(*FindGguf<std::string>(m, "text"), "");
    EXPECT_EQ(*FindGguf<uint64_t>(m, "u64"), ~uint64_t{0});
    EXPECT_EQ(*FindGguf<int64_t>(m, "i64"), -1);
    EXPECT_EQ(*FindGguf<double>(m, "f64"), -0.25);
    const auto* tokens = FindGguf<GgufStrings>(m, "tokenizer.ggml.tokens");
    EXPECT_EQ(tokens->bytes, "abc");
    EXPECT_EQ(tokens->ends, (std::vector<uint32_t>{1, 1, 3}));
    EXPECT_NE(FindGguf<GgufSkipped>(m, "others"), nullptr);
    EXPECT_EQ(*FindGguf<std::vector<int32_t>>(m, "tokenizer.ggml.token_type"),
              (std::vector<int32_t>{1, -2}));
    EXPECT_EQ(FindGguf<double>(m, "u8"), nullptr);
    EXPECT_EQ(FindGguf<double>(m, "absent"), nullptr);
  }
}

TEST(GgufTest, DimensionsBeyondFourAreErrorsB98) {
  for (const uint32_t dims : {0u, 5u, 9u, 0xFFFFFFFFu}) {
    std::string file = Start(1, 0) + GgufText("t") + Little(dims);
    for (int i = 0; i < 20; ++i) file += Little<uint64_t>(1);
    const Status status = Read(file);
    EXPECT_EQ(status.code(), StatusCode::kInvalidModel);
    EXPECT_NE(status.message().find("'t' has " + std::to_string(dims)),
              std::string::npos);
  }
}

TEST(GgufTest, SizesThatAFileOnlyClaimsAreErrorsAndCostNothingB100) {
  const uint64_t huge = uint64_t{1} << 63;
  const std::string key = GgufText("k");
  const std::string array = key + Little<uint32_t>(9);
  for (const std::string& file :
       {Start(huge, 0), Start(0, huge), Start(1 << 20, 0), Start(0, 1 << 20),
        Start(0, 1) + array + Little<uint32_t>(0) + Little(huge),
        Start(0, 1) + array + Little<uint32_t>(8) + Little(huge),
        Start(0, 1) + array + Little<uint32_t>(12) + Little(huge),
        Start(0, 1) + Little(huge),
        Start(0, 1) + key + Little<uint32_t>(8) + Little(huge),
        Start(1, 0) + Little(huge)}) {
    EXPECT_EQ(Read(file).code(), StatusCode::kInvalidModel);
  }
  // Possible sizes, but not of a file that ends here.
  for (const std::string& file :
       {Start(1000, 0), Start(0, 1000), Start(0, 1) + Little<uint64_t>(60000),
        Start(0, 1) + array + Little<uint32_t>(0) + Little<uint64_t>(90000000),
        Start(0, 1) + key + Little<uint32_t>(8) + Little<uint64_t>(16000000)}) {
    EXPECT_EQ(Read(file).code(), StatusCode::kTruncated);
  }
}

TEST(GgufTest, NestedArraysAndUnknownTypesAreErrorsB101) {
  std::string nested = Start(0, 1) + GgufText("deep") + Little<uint32_t>(9);
  for (int i = 0; i < 1000; ++i) nested += Little<uint32_t>(9) + Little<uint64_t>(1);
  const Status status = Read(nested);
  EXPECT_EQ(status.code(), StatusCode::kUnsupported);
  EXPECT_NE(status.message().find("'deep'"), std::string::npos);
  for (const uint32_t type : {13u, 99u, 0xFFFFFFFFu}) {
    EXPECT_EQ(Read(Start(0, 1) + GgufText("k") + Little(type)).code(),
              StatusCode::kInvalidModel);
    EXPECT_EQ(Read(Start(0, 1) + GgufText("k") + Little<uint32_t>(9) + Little(type) +
                   Little<uint64_t>(1))
                  .code(),
              StatusCode::kInvalidModel);
  }
}

TEST(GgufTest, AlignmentMustBeASmallPowerOfTwoB102) {
  const auto read = [](uint32_t alignment) {
    return ReadChanged([&](GgufFile* file) {
      file->AddUint32("general.alignment", alignment);
      if (alignment > 0 && alignment < 1 << 20) file->alignment = alignment;
    });
  };
  for (const uint32_t good : {1u, 2u, 8u, 64u, 4096u}) {
    EXPECT_TRUE(read(good).ok()) << good;
  }
  for (const uint32_t bad : {0u, 3u, 24u, 1u << 30, 1u << 31}) {
    const Status status = read(bad);
    EXPECT_EQ(status.code(), StatusCode::kInvalidModel) << bad;
    EXPECT_NE(status.message().find("general.alignment"), std::string::npos);
  }
  EXPECT_EQ(ReadChanged([](GgufFile* file) {
              file->AddText("general.alignment", "32");
            }).code(),
            StatusCode::kInvalidModel);
}

TEST(GgufTest, VersionsAreTwoAndThree) {
  for (const uint32_t version : {0u, 1u, 4u, 0x03000000u}) {
    EXPECT_EQ(ReadChanged([&](GgufFile* file) { file->version = version; }).code(),
              StatusCode::kUnsupported);
  }
  EXPECT_NE(ReadChanged([](GgufFile* file) { file->version = 0x03000000; })
                .message()
                .find("big endian"),
            std::string::npos);
  EXPECT_EQ(Read("GGML" + std::string(20, '\0')).code(), StatusCode::kInvalidModel);
}

TEST(GgufTest, ATypeThatIsNotReadIsNamedWithItsTensor) {
  const auto message = [](uint32_t type) {
    const Status status =
        ReadChanged([&](GgufFile* file) { file->tensors[0].type = type; });
    EXPECT_EQ(status.code(), StatusCode::kUnsupported);
    return status.message();
  };
  EXPECT_NE(message(12).find("'t' is stored as Q4_K"), std::string::npos);
  EXPECT_NE(message(4).find("'t' is stored as type 4"), std::string::npos);
  EXPECT_NE(message(0xFFFFFFFF).find("type 4294967295"), std::string::npos);
}

TEST(GgufTest, ShapesMustBeWholeBlocksAndFit) {
  const auto read = [](const std::vector<uint64_t>& dims, uint32_t type) {
    return ReadChanged([&](GgufFile* file) {
             file->tensors[0].dims = dims;
             file->tensors[0].type = type;
           })
        .code();
  };
  EXPECT_EQ(read({64}, 0), StatusCode::kOk);
  EXPECT_EQ(read({33}, 8), StatusCode::kInvalidModel);
  EXPECT_EQ(read({16, 2}, 8), StatusCode::kInvalidModel);
  EXPECT_EQ(read({128}, 14), StatusCode::kInvalidModel);
  // Products that wrap round to something small.
  const uint64_t big = uint64_t{1} << 63;
  EXPECT_EQ(read({big, 2}, 0), StatusCode::kInvalidModel);
  EXPECT_EQ(read({big}, 0), StatusCode::kInvalidModel);
  EXPECT_EQ(read({uint64_t{1} << 62, 4, 4}, 0), StatusCode::kInvalidModel);
  EXPECT_EQ(read({32, uint64_t{1} << 59}, 8), StatusCode::kInvalidModel);
}

TEST(GgufTest, OffsetsMustFollowOneAnotherInAnyOrder) {
  // Two tensors of 64 bytes, where the header says so.
  const auto read = [](uint64_t a, uint64_t b, size_t data) {
    std::string file = Start(2, 0);
    for (const auto& [name, offset] : {std::pair("a", a), std::pair("b", b)}) {
      file += GgufText(name) + Little<uint32_t>(1) + Little<uint64_t>(16) +
              Little<uint32_t>(0) + Little(offset);
    }
    file.resize((file.size() + 31) / 32 * 32 + data);
    return Read(file).code();
  };
  EXPECT_EQ(read(0, 64, 128), StatusCode::kOk);
  EXPECT_EQ(read(64, 0, 128), StatusCode::kOk);
  EXPECT_EQ(read(0, 0, 64), StatusCode::kInvalidModel);
  EXPECT_EQ(read(0, 32, 96), StatusCode::kInvalidModel);
  EXPECT_EQ(read(0, 96, 160), StatusCode::kInvalidModel);
  EXPECT_EQ(read(32, 96, 160), StatusCode::kInvalidModel);
  EXPECT_EQ(read(0, 65, 129), StatusCode::kInvalidModel);
  EXPECT_EQ(read(0, ~uint64_t{0} - 31, 128), StatusCode::kInvalidModel);
  EXPECT_EQ(read(0, 64, 160), StatusCode::kInvalidModel);
  EXPECT_EQ(read(0, 64, 127), StatusCode::kTruncated);
}

TEST(GgufTest, NamesThatStandTwiceAreErrors) {
  EXPECT_EQ(ReadChanged([](GgufFile* file) {
              file->tensors.push_back(file->tensors[0]);
            }).code(),
            StatusCode::kInvalidModel);
  EXPECT_EQ(
      ReadChanged([](GgufFile* file) { file->pairs.push_back(file->pairs[0]); }).code(),
      StatusCode::kInvalidModel);
}

TEST(GgufTest, ABoolIsZeroOrOne) {
  EXPECT_EQ(ReadChanged([](GgufFile* file) { file->Add("b", 7, "\2"); }).code(),
            StatusCode::kInvalidModel);
}

TEST(GgufTest, AFileThatEndsEarlyIsTruncatedWhereverItEndsB87) {
  GgufFile file;
  file.AddText("general.architecture", "gpt2");
  file.AddTexts("tokenizer.ggml.tokens", {"a", "b"});
  file.tensors.push_back({"a", {3}, 0, std::string(12, '\1')});
  file.tensors.push_back({"b", {5}, 0, std::string(20, '\2')});
  const std::vector<uint8_t> bytes = file.Bytes();
  // The padding behind the last tensor may be missing.
  const size_t end_of_data = bytes.size() - 12;
  for (size_t end = 0; end <= bytes.size(); ++end) {
    GgufSink sink;
    GgufReader reader(&sink);
    ASSERT_TRUE(reader.Consume(bytes.data(), end).ok());
    EXPECT_EQ(reader.Finish().code(),
              end < end_of_data ? StatusCode::kTruncated : StatusCode::kOk)
        << end;
  }
}

TEST(GgufTest, AnErrorStays) {
  GgufSink sink;
  GgufReader reader(&sink);
  const std::vector<uint8_t> bad(24, 0xFF);
  const Status first = reader.Consume(bad.data(), bad.size());
  EXPECT_EQ(first.code(), StatusCode::kInvalidModel);
  EXPECT_EQ(reader.Consume(bad.data(), 1).message(), first.message());
  EXPECT_EQ(reader.Finish().message(), first.message());
}

}  // namespace
}  // namespace kvasm
