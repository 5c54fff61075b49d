#include "model/attention_weights.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "cache/block_pool.h"
#include "cache/kv_cache.h"
#include "model/gpt2.h"

namespace kvasm {
namespace {

// Enough for the weights to be read seldom, few enough for the activations to be small.
constexpr size_t kMaxRows = 64;

// Keeps the probabilities of one layer, and of one of its heads or all.
class Recorder : public ForwardObserver {
 public:
  Recorder(const AttentionQuery& query, size_t tokens, float* weights)
      : query_(query), tokens_(tokens), weights_(weights) {}

  // The position of the next pass's first row.
  void set_first(size_t position) { first_ = position; }

  void OnActivations(const char*, size_t, const float*, size_t, size_t,
                     size_t) override {}

  void OnAttention(size_t layer, size_t head, size_t row, const float* probabilities,
                   KeyRange range) override {
    const bool all = query_.head == AttentionQuery::kAllHeads;
    if (layer != query_.layer || (!all && head != query_.head)) return;
    float* out = weights_ + ((all ? head : 0) * tokens_ + first_ + row) * tokens_;
    std::copy(probabilities + range.begin, probabilities + range.end,
              out + range.begin);
  }

 private:
  const AttentionQuery& query_;
  size_t tokens_;
  float* weights_;
  size_t first_ = 0;
};

Status Check(const Gpt2Config& c, std::span<const int32_t> ids,
             const AttentionQuery& query) {
  const auto invalid = [](std::string message) {
    return Status(StatusCode::kInvalidArgument, std::move(message));
  };
  if (ids.empty()) return invalid("there are no tokens that could attend");
  if (query.layer >= c.n_layer) {
    return invalid("layer is " + std::to_string(query.layer) +
                   ", but the last one is " + std::to_string(c.n_layer - 1));
  }
  if (query.head != AttentionQuery::kAllHeads && query.head >= c.n_head) {
    return invalid("head is " + std::to_string(query.head) + ", but the last one is " +
                   std::to_string(c.n_head - 1));
  }
  for (const int32_t id : ids) {
    if (id < 0 || static_cast<size_t>(id) >= c.vocab_size) {
      return invalid("token " + std::to_string(id) +
                     " is outside the vocabulary, which ends at " +
                     std::to_string(c.vocab_size - 1));
    }
  }
  if (ids.size() > c.n_positions) {
    return Status(StatusCode::kContextFull, "there are " + std::to_string(ids.size()) +
                                                " tokens, but the model has " +
                                                std::to_string(c.n_positions) +
                                                " positions");
  }
  return OkStatus();
}

}  // namespace

StatusOr<AlignedBuffer<float>> AttentionWeights(const Gpt2Weights& weights,
                                                std::span<const int32_t> ids,
                                                const AttentionQuery& query) {
  const Gpt2Config& c = weights.config;
  KVASM_RETURN_IF_ERROR(Check(c, ids, query));
  const size_t n = ids.size();
  const size_t heads = query.head == AttentionQuery::kAllHeads ? c.n_head : 1;
  AlignedBuffer<float> out;
  KVASM_RETURN_IF_ERROR(
      Allocate(SaturatedProduct(heads, n * n), "the attention weights", &out));
  const size_t max_rows = std::min(n, kMaxRows);
  StatusOr<Gpt2> model = Gpt2::Create(&weights, max_rows, /*max_logit_rows=*/0);
  if (!model.ok()) return model.status();
  StatusOr<BlockPool> pool =
      BlockPool::Create(Gpt2::GeometryOf(c, query.kv_dtype), BlocksFor(n));
  if (!pool.ok()) return pool.status();
  KvCache cache(&*pool, n, query.window);
  Recorder recorder(query, n, out.data());
  std::vector<BatchRow> rows;
  for (size_t at = 0; at < n; at += rows.size()) {
    recorder.set_first(at);
    rows.clear();
    for (size_t i = at; i < std::min(at + max_rows, n); ++i) {
      rows.push_back({ids[i], i, &cache});
    }
    KVASM_RETURN_IF_ERROR(cache.Extend(rows.size()));
    model->Forward(rows, {}, &recorder);
  }
  return out;
}

}  // namespace kvasm
