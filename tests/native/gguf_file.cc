#include "gguf_file.h"

#include <gtest/gtest.h>

#include "base/float16.h"
#include "formats/gguf.h"

namespace kvasm {
namespace {

struct Block {
  size_t elements;
  size_t bytes;
  std::vector<size_t> floats;  // Where its 16-bit floats are.
};

Block BlockOf(GgufType type) {
  switch (type) {
    case GgufType::kF32:
      return {1, 4, {}};
    case GgufType::kF16:
      return {1, 2, {0}};
    case GgufType::kBf16:
      return {1, 2, {}};
    case GgufType::kQ4_0:
      return {32, 18, {0}};
    case GgufType::kQ4_1:
      return {32, 20, {0, 2}};
    case GgufType::kQ5_0:
      return {32, 22, {0}};
    case GgufType::kQ5_1:
      return {32, 24, {0, 2}};
    case GgufType::kQ8_0:
      return {32, 34, {0}};
    case GgufType::kQ6_K:
      return {256, 210, {208}};
  }
  return {};
}

float HalfAt(const std::string& bytes, size_t at) {
  uint16_t bits;
  std::memcpy(&bits, bytes.data() + at, 2);
  return Float16ToFloat(bits);
}

// Bits first .. first+count-1 of a string, the lowest bit of its first byte being 0.
int BitsAt(const std::string& bytes, size_t first, size_t count) {
  int value = 0;
  for (size_t i = 0; i < count; ++i) {
    const size_t bit = first + i;
    value |= (static_cast<uint8_t>(bytes[bit / 8]) >> (bit % 8) & 1) << i;
  }
  return value;
}

float ElementOf(GgufType type, const std::string& block, size_t i) {
  float f32 = 0;
  // Nibble i of 32, the second 16 in the upper halves of the 16 bytes.
  const auto nibble = [&](size_t from) {
    return BitsAt(block, 8 * (from + i % 16) + 4 * (i / 16), 4);
  };
  switch (type) {
    case GgufType::kF32:
      std::memcpy(&f32, block.data(), 4);
      return f32;
    case GgufType::kF16:
      return HalfAt(block, 0);
    case GgufType::kBf16:
      std::memcpy(reinterpret_cast<char*>(&f32) + 2, block.data(), 2);
      return f32;
    case GgufType::kQ4_0:
      return static_cast<float>(nibble(2) - 8) * HalfAt(block, 0);
    case GgufType::kQ4_1:
      return static_cast<float>(nibble(4)) * HalfAt(block, 0) + HalfAt(block, 2);
    case GgufType::kQ5_0:
      return static_cast<float>(nibble(6) + 16 * BitsAt(block, 16 + i, 1) - 16) *
             HalfAt(block, 0);
    case GgufType::kQ5_1:
      return static_cast<float>(nibble(8) + 16 * BitsAt(block, 32 + i, 1)) *
                 HalfAt(block, 0) +
             HalfAt(block, 2);
    case GgufType::kQ8_0:
      return static_cast<float>(static_cast<signed char>(block[2 + i])) *
             HalfAt(block, 0);
    case GgufType::kQ6_K: {
      const size_t half = i / 128;
      const size_t j = i % 128;
      const int low = BitsAt(block, 8 * (64 * half + j % 64) + 4 * (j / 64), 4);
      const int high = BitsAt(block, 8 * (128 + 32 * half + j % 32) + 2 * (j / 32), 2);
      const int scale = static_cast<signed char>(block[192 + i / 16]);
      return HalfAt(block, 208) * static_cast<float>(scale) *
             static_cast<float>(16 * high + low - 32);
    }
  }
  return 0;
}

}  // namespace

std::vector<uint8_t> GgufFile::Bytes() const {
  std::string header = "GGUF" + Little(version) + Little<uint64_t>(tensors.size()) +
                       Little<uint64_t>(pairs.size());
  for (const std::string& pair : pairs) header += pair;
  std::string data;
  const auto pad = [this](std::string* text) {
    while (text->size() % alignment != 0) text->push_back('\0');
  };
  for (const GgufFileTensor& tensor : tensors) {
    header += GgufText(tensor.name) + Little(static_cast<uint32_t>(tensor.dims.size()));
    for (const uint64_t dim : tensor.dims) header += Little(dim);
    header += Little(tensor.type) + Little<uint64_t>(data.size());
    data += tensor.bytes;
    pad(&data);
  }
  pad(&header);
  header += data;
  return {header.begin(), header.end()};
}

Status ReadGguf(const std::vector<uint8_t>& file, size_t piece, TensorSink* sink) {
  GgufReader reader(sink);
  return ReadInPieces(&reader, file, piece);
}

std::string RandomEncoded(TestRandom& random, GgufType type, size_t n) {
  const Block block = BlockOf(type);
  std::string bytes;
  if (type == GgufType::kF32) {
    for (const float x : RandomFloats(random, n, 0.2f)) bytes += Little(x);
    return bytes;
  }
  for (size_t b = 0; b < n / block.elements; ++b) {
    const size_t begin = bytes.size();
    for (size_t i = 0; i < block.bytes; ++i) {
      bytes.push_back(static_cast<char>(Uniform(random, 0, 255)));
    }
    // About 2^-9 to 2^-4, either sign.
    for (const size_t at : block.floats) {
      const size_t bits = Uniform(random, 0x1800, 0x2C00) | Uniform(random, 0, 1) << 15;
      bytes[begin + at] = static_cast<char>(bits);
      bytes[begin + at + 1] = static_cast<char>(bits >> 8);
    }
    if (type == GgufType::kBf16) {
      bytes[begin + 1] = static_cast<char>(Uniform(random, 0x3A, 0x3E));
    }
  }
  return bytes;
}

std::vector<float> DecodeNaively(GgufType type, const std::string& bytes) {
  const Block block = BlockOf(type);
  std::vector<float> elements;
  for (size_t at = 0; at < bytes.size(); at += block.bytes) {
    for (size_t i = 0; i < block.elements; ++i) {
      elements.push_back(ElementOf(type, bytes.substr(at, block.bytes), i));
    }
  }
  return elements;
}

GgufFile ToGguf(const Gpt2Config& c, TestTensors* tensors, GgufType type,
                TestRandom* random) {
  GgufFile file;
  const auto u32 = [](size_t n) { return static_cast<uint32_t>(n); };
  file.AddText("general.architecture", "gpt2");
  file.AddUint32("gpt2.context_length", u32(c.n_positions));
  file.AddUint32("gpt2.embedding_length", u32(c.n_embd));
  file.AddUint32("gpt2.feed_forward_length", u32(c.n_inner));
  file.AddUint32("gpt2.block_count", u32(c.n_layer));
  file.AddUint32("gpt2.attention.head_count", u32(c.n_head));
  if (c.n_kv_head != c.n_head) {
    file.AddUint32("gpt2.attention.head_count_kv", u32(c.n_kv_head));
  }
  file.AddFloat32("gpt2.attention.layer_norm_epsilon", c.layer_norm_epsilon);

  // Hugging Face's tensor, [in, out], becomes [out, in]; an embedding stays as it is.
  const auto matrix = [&](const std::string& name, const std::string& hugging_face,
                          bool is_conv1d, bool is_quantised) {
    TestTensor& tensor = (*tensors)[hugging_face];
    const size_t rows = tensor.shape[is_conv1d ? 1 : 0];
    const size_t columns = tensor.shape[is_conv1d ? 0 : 1];
    const auto at = [&](size_t row, size_t column) -> float& {
      return tensor.elements[is_conv1d ? column * rows + row : row * columns + column];
    };
    std::string bytes;
    if (is_quantised) {
      bytes = RandomEncoded(*random, type, rows * columns);
      const std::vector<float> elements = DecodeNaively(type, bytes);
      for (size_t i = 0; i < rows * columns; ++i) {
        at(i / columns, i % columns) = elements[i];
      }
    } else {
      for (size_t i = 0; i < rows * columns; ++i) {
        bytes += Little(at(i / columns, i % columns));
      }
    }
    file.tensors.push_back(
        {name, {columns, rows}, is_quantised ? static_cast<uint32_t>(type) : 0, bytes});
  };
  const auto vector = [&](const std::string& name, const std::string& hugging_face) {
    std::string bytes;
    for (const float x : (*tensors)[hugging_face].elements) bytes += Little(x);
    file.tensors.push_back({name, {bytes.size() / 4}, 0, bytes});
  };
  const bool quantise = type != GgufType::kF32;
  matrix("token_embd.weight", "wte.weight", false, quantise);
  matrix("position_embd.weight", "wpe.weight", false, false);
  for (size_t l = 0; l < c.n_layer; ++l) {
    const std::string blk = "blk." + std::to_string(l) + ".";
    const std::string h = "h." + std::to_string(l) + ".";
    const std::pair<const char*, const char*> norms[] = {{"attn_norm", "ln_1"},
                                                         {"ffn_norm", "ln_2"}};
    for (const auto& [gguf, name] : norms) {
      vector(blk + gguf + ".weight", h + name + ".weight");
      vector(blk + gguf + ".bias", h + name + ".bias");
    }
    const std::pair<const char*, const char*> linears[] = {
        {"attn_qkv", "attn.c_attn"},
        {"attn_output", "attn.c_proj"},
        {"ffn_up", "mlp.c_fc"},
        {"ffn_down", "mlp.c_proj"}};
    for (const auto& [gguf, name] : linears) {
      matrix(blk + gguf + ".weight", h + name + ".weight", true, quantise);
      vector(blk + gguf + ".bias", h + name + ".bias");
    }
  }
  vector("output_norm.weight", "ln_f.weight");
  vector("output_norm.bias", "ln_f.bias");
  if (tensors->count("lm_head.weight") > 0) {
    matrix("output.weight", "lm_head.weight", false, quantise);
  }
  return file;
}

}  // namespace kvasm
