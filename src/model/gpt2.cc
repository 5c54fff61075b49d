#include "model/gpt2.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstring>
#include <utility>

#include "kernels/attention.h"
#include "kernels/elementwise.h"
#include "kernels/layer_norm.h"
#include "kernels/matmul.h"
#include "kernels/softmax.h"

namespace kvasm {
namespace {

// Rows of one sequence whose attention is computed together, at the most.
constexpr size_t kRowsAtOnce = 2;

}  // namespace

KvGeometry Gpt2::GeometryOf(const Gpt2Config& config, KvDtype dtype) {
  return {config.n_layer, config.n_kv_head, config.head_dim(), dtype};
}

StatusOr<Gpt2> Gpt2::Create(const Gpt2Weights* weights, size_t max_rows,
                            size_t max_logit_rows, ThreadPool* pool) {
  constexpr char kWhat[] = "the activations";
  const Gpt2Config& c = weights->config;
  Gpt2 model;
  model.weights_ = weights;
  model.pool_ = pool;
  model.max_rows_ = max_rows;
  model.max_logit_rows_ = max_logit_rows;
  const auto allocate = [&](size_t rows, size_t columns, AlignedBuffer<float>* buffer) {
    return Allocate(SaturatedProduct(rows, PaddedSize(columns)), kWhat, buffer);
  };
  KVASM_RETURN_IF_ERROR(allocate(max_rows, c.n_embd, &model.x_));
  KVASM_RETURN_IF_ERROR(allocate(max_rows, c.n_embd, &model.norm_));
  KVASM_RETURN_IF_ERROR(allocate(max_rows, c.n_qkv(), &model.qkv_));
  KVASM_RETURN_IF_ERROR(allocate(max_rows, c.n_embd, &model.attended_));
  KVASM_RETURN_IF_ERROR(allocate(max_rows, c.n_inner, &model.hidden_));
  KVASM_RETURN_IF_ERROR(allocate(max_rows, c.n_embd, &model.projected_));
  if (weights->dtype() != WeightDtype::kF32) {
    StatusOr<QuantizedRows> quantized =
        QuantizedRows::Create(max_rows, std::max(c.n_embd, c.n_inner));
    if (!quantized.ok()) return quantized.status();
    model.quantized_ = std::move(*quantized);
  }
  KVASM_RETURN_IF_ERROR(
      allocate(c.n_head * kRowsAtOnce, c.n_positions, &model.scores_));
  KVASM_RETURN_IF_ERROR(allocate(max_logit_rows, c.vocab_size, &model.logits_));
  return model;
}

size_t Gpt2::activation_bytes() const {
  return x_.bytes() + norm_.bytes() + qkv_.bytes() + attended_.bytes() +
         hidden_.bytes() + projected_.bytes() + quantized_.bytes() + scores_.bytes() +
         logits_.bytes();
}

void Gpt2::Multiply(const float* x, size_t rows, const PackedMatrix& w,
                    const float* bias, float* out) {
  const size_t stride = PaddedSize(w.n_in());
  if (w.dtype() != WeightDtype::kF32) {
    ParallelFor(pool_, rows, [&](size_t r) {
      quantized_.Quantize(x + r * stride, w.n_in(), w.dtype(), r);
    });
  }
  MatMul({x, rows, stride, &quantized_}, w, bias, out, PaddedSize(w.n_out()), pool_);
}

void Gpt2::Embed(std::span<const BatchRow> rows) {
  const Gpt2Config& c = config();
  const size_t stride = PaddedSize(c.n_embd);
  for (size_t r = 0; r < rows.size(); ++r) {
    float* x = x_.data() + r * stride;
    weights_->wte.GatherOutput(static_cast<size_t>(rows[r].token), x);
    AddTo(x, weights_->wpe.data() + rows[r].position * stride, stride);
  }
}

void Gpt2::Normalize(const float* x, size_t rows, const LayerNormWeights& w) {
  const Gpt2Config& c = config();
  const size_t stride = PaddedSize(c.n_embd);
  ParallelFor(pool_, rows, [&](size_t r) {
    LayerNorm(x + r * stride, 1, stride, c.n_embd, w.gain.data(), w.bias.data(),
              c.layer_norm_epsilon, norm_.data() + r * stride);
  });
}

void Gpt2::AttendHead(size_t layer, size_t head, std::span<const BatchRow> rows,
                      size_t first, float* scores) {
  const Gpt2Config& c = config();
  const size_t head_dim = c.head_dim();
  const float scale = 1.0f / std::sqrt(static_cast<float>(head_dim));
  const size_t q_stride = PaddedSize(c.n_qkv());
  const size_t scores_stride = PaddedSize(c.n_positions);
  const size_t out_stride = PaddedSize(c.n_embd);
  const float* q = qkv_.data() + first * q_stride + head * head_dim;
  float* out = attended_.data() + first * out_stride + head * head_dim;
  const KvCache& cache = *rows[0].cache;
  const size_t kv_head = head * c.n_kv_head / c.n_head;
  const KvHead keys = cache.Keys(layer, kv_head);
  const KvHead values = cache.Values(layer, kv_head);
  if (rows.size() == 1) {
    const KeyRange range = cache.Visible(rows[0].position);
    AttentionScores(q, keys, range, scale, scores);
    Softmax(range, scores);
    AttentionValues(scores, values, range, out);
    return;
  }
  const KeyRange ranges[2] = {cache.Visible(rows[0].position),
                              cache.Visible(rows[1].position)};
  AttentionScoresOfTwo(q, q_stride, keys, ranges, scale, scores, scores_stride);
  Softmax(ranges[0], scores);
  Softmax(ranges[1], scores + scores_stride);
  AttentionValuesOfTwo(scores, scores_stride, values, ranges, out, out_stride);
}

void Gpt2::Attend(size_t layer, std::span<const BatchRow> rows,
                  ForwardObserver* observer) {
  const Gpt2Config& c = config();
  for (size_t r = 0; r < rows.size(); ++r) {
    const float* keys =
        qkv_.data() + r * PaddedSize(c.n_qkv()) + c.n_head * c.head_dim();
    rows[r].cache->Store(layer, rows[r].position, keys,
                         keys + c.n_kv_head * c.head_dim());
  }
  const size_t scores_stride = PaddedSize(c.n_positions);
  // Heads outside: the keys and values of one stay in a thread's cache for all rows.
  const auto attend = [&](size_t head) {
    float* scores = scores_.data() + head * kRowsAtOnce * scores_stride;
    for (size_t r = 0; r < rows.size();) {
      const bool two = r + 1 < rows.size() && rows[r + 1].cache == rows[r].cache;
      const size_t count = two ? 2 : 1;
      AttendHead(layer, head, rows.subspan(r, count), r, scores);
      for (size_t i = 0; observer != nullptr && i < count; ++i) {
        observer->OnAttention(layer, head, r + i, scores + i * scores_stride,
                              rows[r + i].cache->Visible(rows[r + i].position));
      }
      r += count;
    }
  };
  if (observer != nullptr) {
    // In order, on the caller's thread.
    for (size_t head = 0; head < c.n_head; ++head) attend(head);
  } else {
    ParallelFor(pool_, c.n_head, attend);
  }
}

void Gpt2::ComputeLogits(std::span<const size_t> logit_rows,
                         ForwardObserver* observer) {
  const Gpt2Config& c = config();
  const size_t stride = PaddedSize(c.n_embd);
  if (logit_rows.empty()) return;
  // The rows that want logits, side by side.
  for (size_t i = 0; i < logit_rows.size(); ++i) {
    std::memcpy(projected_.data() + i * stride, x_.data() + logit_rows[i] * stride,
                stride * sizeof(float));
  }
  Normalize(projected_.data(), logit_rows.size(), weights_->ln_f);
  if (observer) {
    observer->OnActivations("ln_f", c.n_layer, norm_.data(), logit_rows.size(),
                            c.n_embd, stride);
  }
  Multiply(norm_.data(), logit_rows.size(), weights_->output(),
           weights_->lm_head_bias.data(), logits_.data());
}

const float* Gpt2::FinalHidden(size_t row) {
  Normalize(x_.data() + row * PaddedSize(config().n_embd), 1, weights_->ln_f);
  return norm_.data();
}

void Gpt2::Forward(std::span<const BatchRow> rows, std::span<const size_t> logit_rows,
                   ForwardObserver* observer) {
  assert(rows.size() <= max_rows_ && logit_rows.size() <= max_logit_rows_);
  const Gpt2Config& c = config();
  const size_t n = rows.size();
  const size_t embd_stride = PaddedSize(c.n_embd);
  const size_t inner_stride = PaddedSize(c.n_inner);
  size_t layer = 0;
  const auto observe = [&](const char* name, const AlignedBuffer<float>& data,
                           size_t columns) {
    if (observer) {
      observer->OnActivations(name, layer, data.data(), n, columns,
                              PaddedSize(columns));
    }
  };

  Embed(rows);
  observe("embedding", x_, c.n_embd);
  for (; layer < c.n_layer; ++layer) {
    const Gpt2LayerWeights& w = weights_->layers[layer];
    Normalize(x_.data(), n, w.ln_1);
    observe("ln_1", norm_, c.n_embd);
    Multiply(norm_.data(), n, w.c_attn.weight, w.c_attn.bias.data(), qkv_.data());
    observe("c_attn", qkv_, c.n_qkv());
    Attend(layer, rows, observer);
    observe("attention", attended_, c.n_embd);
    Multiply(attended_.data(), n, w.c_proj.weight, w.c_proj.bias.data(),
             projected_.data());
    observe("c_proj", projected_, c.n_embd);
    AddTo(x_.data(), projected_.data(), n * embd_stride);
    observe("residual_1", x_, c.n_embd);

    Normalize(x_.data(), n, w.ln_2);
    observe("ln_2", norm_, c.n_embd);
    Multiply(norm_.data(), n, w.c_fc.weight, w.c_fc.bias.data(), hidden_.data());
    observe("c_fc", hidden_, c.n_inner);
    ParallelFor(pool_, n, [&](size_t r) {
      GeluNew(hidden_.data() + r * inner_stride, inner_stride);
    });
    observe("gelu", hidden_, c.n_inner);
    Multiply(hidden_.data(), n, w.mlp_c_proj.weight, w.mlp_c_proj.bias.data(),
             projected_.data());
    observe("mlp.c_proj", projected_, c.n_embd);
    AddTo(x_.data(), projected_.data(), n * embd_stride);
    observe("residual_2", x_, c.n_embd);
  }
  ComputeLogits(logit_rows, observer);
}

}  // namespace kvasm
