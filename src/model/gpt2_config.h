#ifndef KVASM_MODEL_GPT2_CONFIG_H_
#define KVASM_MODEL_GPT2_CONFIG_H_

#include <cstddef>
#include <string_view>

#include "base/status.h"

namespace kvasm {

// The largest size that a config may claim: a power of two above any real GPT-2's, so
// that products of a few sizes stay within 64 bits.
inline constexpr unsigned kMaxGpt2Size = 1u << 24;

// The shape of a GPT-2, under the names of the Hugging Face config.json.
struct Gpt2Config {
  size_t n_layer = 0;
  size_t n_head = 0;
  size_t n_kv_head = 0;  // Divides n_head; equal to it in plain GPT-2.
  size_t n_embd = 0;
  size_t n_inner = 0;
  size_t n_positions = 0;
  size_t vocab_size = 0;
  float layer_norm_epsilon = 1e-5f;
  int eos_token_id = -1;  // -1: none.

  size_t head_dim() const { return n_embd / n_head; }
  // Columns of c_attn: queries, then keys, then values.
  size_t n_qkv() const { return (n_head + 2 * n_kv_head) * head_dim(); }
};

// Reads a config.json. kInvalidConfig where it is malformed or describes no GPT-2,
// kUnsupported where it asks for a variant that would silently compute something else.
StatusOr<Gpt2Config> ParseGpt2Config(std::string_view json);

}  // namespace kvasm

#endif  // KVASM_MODEL_GPT2_CONFIG_H_
