// GPT-2's forward pass (Radford et al. 2019): one for prefill and decode, one sequence
// and many.

#ifndef KVASM_MODEL_GPT2_H_
#define KVASM_MODEL_GPT2_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/aligned_buffer.h"
#include "base/status.h"
#include "base/thread_pool.h"
#include "cache/kv_cache.h"
#include "model/gpt2_weights.h"

namespace kvasm {

// A token to be computed: its keys and values go to `position` of `cache`, and it sees
// the positions up to its own there, as far back as the cache's window goes.
struct BatchRow {
  int32_t token;
  size_t position;
  KvCache* cache;
};

// Sees the activations of each layer go by; for tests, and for views of the model at
// work.
class ForwardObserver {
 public:
  virtual ~ForwardObserver() = default;

  // `name` is the operation's, as in the checkpoint: "embedding", "ln_1", "c_attn",
  // "attention", "c_proj", "ln_2", "c_fc", "gelu", "mlp.c_proj", "residual_1",
  // "residual_2", "ln_f"; data is [rows, stride], of which n columns count.
  virtual void OnActivations(const char* name, size_t layer, const float* data,
                             size_t rows, size_t n, size_t stride) = 0;

  // A head's probabilities for one row: probabilities[j] for j in range.
  virtual void OnAttention(size_t layer, size_t head, size_t row,
                           const float* probabilities, KeyRange range) = 0;
};

class Gpt2 {
 public:
  // `weights` must outlive the model. Forward takes up to `max_rows` rows, and computes
  // logits for up to `max_logit_rows` of them. `pool`, if any, must outlive it, too.
  static StatusOr<Gpt2> Create(const Gpt2Weights* weights, size_t max_rows,
                               size_t max_logit_rows, ThreadPool* pool = nullptr);

  const Gpt2Config& config() const { return weights_->config; }
  size_t max_rows() const { return max_rows_; }
  size_t max_logit_rows() const { return max_logit_rows_; }
  size_t activation_bytes() const;

  static KvGeometry GeometryOf(const Gpt2Config& config, KvDtype dtype = KvDtype::kF32);

  // Computes the rows, in each sequence's order of positions, and stores their keys and
  // values; the caches must have been extended to hold them. Allocates nothing.
  //
  // logit_rows: which of the rows to compute logits for. They are logits()[i], in the
  // order of logit_rows, until the next call.
  //
  // Preconditions, which the engine checks: tokens are below vocab_size, positions
  // below n_positions.
  void Forward(std::span<const BatchRow> rows, std::span<const size_t> logit_rows,
               ForwardObserver* observer = nullptr);

  // [n_embd]: the final hidden state, after ln_f, of one of the rows of the last
  // Forward. Valid until the next call of this or of Forward.
  const float* FinalHidden(size_t row);

  // [vocab_size]
  const float* logits(size_t i) const {
    return logits_.data() + i * PaddedSize(config().vocab_size);
  }

 private:
  void Embed(std::span<const BatchRow> rows);
  // out = x w + bias; x [rows, PaddedSize(n_in)], out [rows, PaddedSize(n_out)].
  void Multiply(const float* x, size_t rows, const PackedMatrix& w, const float* bias,
                float* out);
  void Normalize(const float* x, size_t rows, const LayerNormWeights& w);
  void Attend(size_t layer, std::span<const BatchRow> rows, ForwardObserver* observer);
  // One query head for one or two rows of a sequence, of which `first` is the first.
  // scores: [rows.size(), PaddedSize(n_positions)]
  void AttendHead(size_t layer, size_t head, std::span<const BatchRow> rows,
                  size_t first, float* scores);
  void ComputeLogits(std::span<const size_t> logit_rows, ForwardObserver* observer);

  const Gpt2Weights* weights_ = nullptr;
  ThreadPool* pool_ = nullptr;
  size_t max_rows_ = 0;
  size_t max_logit_rows_ = 0;
  // Activations, [max_rows, PaddedSize(columns)].
  AlignedBuffer<float> x_;          // n_embd: the residual stream
  AlignedBuffer<float> norm_;       // n_embd: ln_1, ln_2, ln_f
  AlignedBuffer<float> qkv_;        // n_qkv
  AlignedBuffer<float> attended_;   // n_embd
  AlignedBuffer<float> hidden_;     // n_inner
  AlignedBuffer<float> projected_;  // n_embd
  QuantizedRows quantized_;         // the input of a product with quantised weights
  AlignedBuffer<float> scores_;     // [n_head, 2, PaddedSize(n_positions)]
  AlignedBuffer<float> logits_;     // [max_logit_rows, PaddedSize(vocab_size)]
};

}  // namespace kvasm

#endif  // KVASM_MODEL_GPT2_H_
