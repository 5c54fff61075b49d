#include "model/gpt2_weights.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace kvasm {
namespace {

constexpr char kWhat[] = "the weights";

Status CreateMatrix(size_t n_in, size_t n_out, WeightDtype dtype,
                    PackedMatrix* matrix) {
  StatusOr<PackedMatrix> created = PackedMatrix::Create(n_in, n_out, kWhat, dtype);
  if (!created.ok()) return created.status();
  *matrix = std::move(*created);
  return OkStatus();
}

Status CreateLinear(size_t n_in, size_t n_out, WeightDtype dtype,
                    LinearWeights* linear) {
  KVASM_RETURN_IF_ERROR(CreateMatrix(n_in, n_out, dtype, &linear->weight));
  return Allocate(PaddedSize(n_out), kWhat, &linear->bias);
}

Status CreateLayerNorm(size_t n, LayerNormWeights* layer_norm) {
  KVASM_RETURN_IF_ERROR(Allocate(PaddedSize(n), kWhat, &layer_norm->gain));
  return Allocate(PaddedSize(n), kWhat, &layer_norm->bias);
}

size_t Bytes(const LayerNormWeights& layer_norm) {
  return layer_norm.gain.bytes() + layer_norm.bias.bytes();
}

size_t Bytes(const LinearWeights& linear) {
  return linear.weight.bytes() + linear.bias.bytes();
}

}  // namespace

StatusOr<Gpt2Weights> Gpt2Weights::Create(const Gpt2Config& config, WeightDtype dtype,
                                          bool separate_lm_head) {
  Gpt2Weights w;
  w.config = config;
  const auto matrix = [dtype](size_t n_in, size_t n_out, PackedMatrix* created) {
    return CreateMatrix(n_in, n_out, dtype, created);
  };
  const auto linear = [dtype](size_t n_in, size_t n_out, LinearWeights* created) {
    return CreateLinear(n_in, n_out, dtype, created);
  };
  KVASM_RETURN_IF_ERROR(matrix(config.n_embd, config.vocab_size, &w.wte));
  KVASM_RETURN_IF_ERROR(Allocate(
      SaturatedProduct(config.n_positions, PaddedSize(config.n_embd)), kWhat, &w.wpe));
  for (size_t l = 0; l < config.n_layer; ++l) {
    Gpt2LayerWeights layer;
    KVASM_RETURN_IF_ERROR(CreateLayerNorm(config.n_embd, &layer.ln_1));
    KVASM_RETURN_IF_ERROR(linear(config.n_embd, config.n_qkv(), &layer.c_attn));
    KVASM_RETURN_IF_ERROR(linear(config.n_embd, config.n_embd, &layer.c_proj));
    KVASM_RETURN_IF_ERROR(CreateLayerNorm(config.n_embd, &layer.ln_2));
    KVASM_RETURN_IF_ERROR(linear(config.n_embd, config.n_inner, &layer.c_fc));
    KVASM_RETURN_IF_ERROR(linear(config.n_inner, config.n_embd, &layer.mlp_c_proj));
    w.layers.push_back(std::move(layer));
  }
  KVASM_RETURN_IF_ERROR(CreateLayerNorm(config.n_embd, &w.ln_f));
  if (separate_lm_head) {
    KVASM_RETURN_IF_ERROR(matrix(config.n_embd, config.vocab_size, &w.lm_head));
  }
  KVASM_RETURN_IF_ERROR(
      Allocate(PaddedSize(config.vocab_size), kWhat, &w.lm_head_bias));
  return w;
}

size_t Gpt2Weights::bytes() const {
  size_t bytes =
      wte.bytes() + wpe.bytes() + Bytes(ln_f) + lm_head.bytes() + lm_head_bias.bytes();
  for (const Gpt2LayerWeights& layer : layers) {
    bytes += Bytes(layer.ln_1) + Bytes(layer.c_attn) + Bytes(layer.c_proj) +
             Bytes(layer.ln_2) + Bytes(layer.c_fc) + Bytes(layer.mlp_c_proj);
  }
  return bytes;
}

namespace {

// FNV-1a over 32-bit words.
class Hash {
 public:
  void Add(uint32_t word) { value_ = (value_ ^ word) * 0x100000001B3u; }
  void Add(const AlignedBuffer<float>& floats) {
    for (size_t i = 0; i < floats.size(); ++i) Add(std::bit_cast<uint32_t>(floats[i]));
  }
  void Add(const LayerNormWeights& w) {
    Add(w.gain);
    Add(w.bias);
  }
  void Add(const PackedMatrix& w) {
    if (w.empty()) return;
    constexpr size_t kSamples = 256;
    const size_t size = w.n_in() * w.n_out();
    const size_t step = std::max<size_t>(size / kSamples, 1);
    for (size_t i = 0; i < size; i += step) {
      Add(std::bit_cast<uint32_t>(w.At(i / w.n_out(), i % w.n_out())));
    }
  }
  void Add(const LinearWeights& w) {
    Add(w.weight);
    Add(w.bias);
  }
  uint64_t value() const { return value_; }

 private:
  uint64_t value_ = 0xCBF29CE484222325u;
};

}  // namespace

uint64_t Gpt2Weights::Fingerprint() const {
  Hash hash;
  for (const size_t size :
       {config.n_layer, config.n_head, config.n_kv_head, config.n_embd, config.n_inner,
        config.n_positions, config.vocab_size}) {
    hash.Add(static_cast<uint32_t>(size));
  }
  hash.Add(std::bit_cast<uint32_t>(config.layer_norm_epsilon));
  hash.Add(wte);
  for (const Gpt2LayerWeights& layer : layers) {
    hash.Add(layer.ln_1);
    hash.Add(layer.c_attn);
    hash.Add(layer.c_proj);
    hash.Add(layer.ln_2);
    hash.Add(layer.c_fc);
    hash.Add(layer.mlp_c_proj);
  }
  hash.Add(ln_f);
  hash.Add(lm_head);
  hash.Add(lm_head_bias);
  return hash.value();
}

}  // namespace kvasm
