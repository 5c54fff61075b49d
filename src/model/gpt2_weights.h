#ifndef KVASM_MODEL_GPT2_WEIGHTS_H_
#define KVASM_MODEL_GPT2_WEIGHTS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/aligned_buffer.h"
#include "base/status.h"
#include "kernels/packed_matrix.h"
#include "model/gpt2_config.h"

namespace kvasm {

// Vectors are padded to PaddedSize(n) with zeros.
struct LayerNormWeights {
  AlignedBuffer<float> gain;
  AlignedBuffer<float> bias;
};

struct LinearWeights {
  PackedMatrix weight;  // [n_in, n_out]
  AlignedBuffer<float> bias;
};

struct Gpt2LayerWeights {
  LayerNormWeights ln_1;
  LinearWeights c_attn;  // [n_embd, n_qkv]
  LinearWeights c_proj;  // [n_embd, n_embd]
  LayerNormWeights ln_2;
  LinearWeights c_fc;        // [n_embd, n_inner]
  LinearWeights mlp_c_proj;  // [n_inner, n_embd]
};

struct Gpt2Weights {
  // All zero, ready to be filled. `dtype` is that of all matrices; wpe and the vectors
  // stay floats. lm_head is allocated only where it is not tied to wte.
  static StatusOr<Gpt2Weights> Create(const Gpt2Config& config, WeightDtype dtype,
                                      bool separate_lm_head);

  Gpt2Config config;
  PackedMatrix wte;  // [n_embd, vocab_size]: the embedding, packed as the lm_head that
                     // it also is.
  AlignedBuffer<float> wpe;  // [n_positions, PaddedSize(n_embd)]
  std::vector<Gpt2LayerWeights> layers;
  LayerNormWeights ln_f;
  PackedMatrix lm_head;               // Empty where tied.
  AlignedBuffer<float> lm_head_bias;  // Zero where the checkpoint has none.

  const PackedMatrix& output() const { return lm_head.empty() ? wte : lm_head; }

  WeightDtype dtype() const { return wte.dtype(); }

  size_t bytes() const;

  // A number that tells these weights from others, a fine-tune included: a hash of the
  // shape, of every vector, and of a sample of every matrix.
  uint64_t Fingerprint() const;
};

}  // namespace kvasm

#endif  // KVASM_MODEL_GPT2_WEIGHTS_H_
