#include "reference.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "sampling/log_probabilities.h"

namespace kvasm {
namespace {

using Row = std::vector<double>;

// y[o] = sum x[i] w[i, o] + b[o], w [in, out].
Row Linear(const Row& x, const TestTensor& w, const TestTensor& b) {
  Row y(b.elements.begin(), b.elements.end());
  for (size_t i = 0; i < x.size(); ++i) {
    for (size_t o = 0; o < y.size(); ++o) y[o] += x[i] * w.elements[i * y.size() + o];
  }
  return y;
}

Row Normalise(const Row& x, const TestTensor& gain, const TestTensor& bias,
              double epsilon) {
  const double n = static_cast<double>(x.size());
  const double mean = std::accumulate(x.begin(), x.end(), 0.0) / n;
  double variance = 0;
  for (const double v : x) variance += (v - mean) * (v - mean) / n;
  Row y(x.size());
  for (size_t i = 0; i < x.size(); ++i) {
    y[i] = (x[i] - mean) / std::sqrt(variance + epsilon) * gain.elements[i] +
           bias.elements[i];
  }
  return y;
}

double Gelu(double x) {
  return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
}

// One head of one query, over the rows of [q | k | v] up to its own.
// Returns what it gives to each of them.
Row AttendHead(const Gpt2Config& c, const std::vector<Row>& qkv, size_t i, size_t head,
               size_t window, Row* out) {
  const size_t d = c.head_dim();
  const size_t kv_head = head * c.n_kv_head / c.n_head;
  const size_t k_at = (c.n_head + kv_head) * d;
  const size_t v_at = (c.n_head + c.n_kv_head + kv_head) * d;
  Row weights(i + 1, 0.0);
  double sum = 0;
  for (size_t j = 0; j <= i; ++j) {
    if (window != 0 && i - j >= window) continue;
    double score = 0;
    for (size_t e = 0; e < d; ++e) score += qkv[i][head * d + e] * qkv[j][k_at + e];
    weights[j] = std::exp(score / std::sqrt(static_cast<double>(d)));
    sum += weights[j];
  }
  for (size_t j = 0; j <= i; ++j) {
    weights[j] /= sum;
    for (size_t e = 0; e < d; ++e) {
      (*out)[head * d + e] += weights[j] * qkv[j][v_at + e];
    }
  }
  return weights;
}

}  // namespace

ReferenceModel::ReferenceModel(TestRandom& random)
    : ReferenceModel(RandomConfig(random), random) {}

ReferenceModel::ReferenceModel(const Gpt2Config& config, TestRandom& random)
    : ReferenceModel(config, ToSafetensors(RandomTensors(config, random)),
                     RandomDtype(random)) {}

ReferenceModel::ReferenceModel(const Gpt2Config& config,
                               const std::vector<uint8_t>& file, WeightDtype dtype)
    : sink_(config, CheckpointFormat::kHuggingFace, dtype) {
  EXPECT_TRUE(ReadSafetensors(file, 4096, &sink_).ok());
}

std::vector<Logits> ForwardLogits(Gpt2* model, KvCache* cache,
                                  const std::vector<int32_t>& ids, size_t at,
                                  size_t count) {
  EXPECT_TRUE(cache->Extend(count).ok());
  std::vector<BatchRow> rows;
  for (size_t i = 0; i < count; ++i) rows.push_back({ids[at + i], at + i, cache});
  std::vector<size_t> all(count);
  std::iota(all.begin(), all.end(), size_t{0});
  model->Forward(rows, all);
  std::vector<Logits> logits;
  for (size_t i = 0; i < count; ++i) {
    logits.emplace_back(model->logits(i),
                        model->logits(i) + model->config().vocab_size);
  }
  return logits;
}

std::vector<Logits> UncachedLogits(const Gpt2Weights& weights,
                                   const std::vector<int32_t>& ids, size_t window,
                                   KvDtype dtype) {
  const size_t n = ids.size();
  Gpt2 model = std::move(*Gpt2::Create(&weights, n, n));
  BlockPool pool = std::move(
      *BlockPool::Create(Gpt2::GeometryOf(weights.config, dtype), BlocksFor(n)));
  KvCache cache(&pool, n, window);
  return ForwardLogits(&model, &cache, ids, 0, n);
}

std::vector<double> PromptLogProbabilities(const std::vector<Logits>& logits,
                                           const std::vector<int32_t>& ids,
                                           size_t begin, size_t likeliest) {
  std::vector<double> values;
  std::vector<TokenLogProbability> top(likeliest);
  for (size_t i = std::max<size_t>(begin, 1); i < ids.size(); ++i) {
    const Logits& row = logits[i - 1];
    values.push_back(LogProbabilities(row.data(), row.size(), ids[i], top));
    for (const TokenLogProbability& token : top) {
      values.push_back(token.id);
      values.push_back(token.value);
    }
  }
  return values;
}

std::vector<Logits> NaiveLogits(const Gpt2Config& c, const TestTensors& t,
                                const std::vector<int32_t>& ids, size_t window,
                                const NaiveAttentionProbe& probe) {
  std::vector<Row> x;
  for (size_t i = 0; i < ids.size(); ++i) {
    Row row(c.n_embd);
    for (size_t e = 0; e < c.n_embd; ++e) {
      row[e] = t.at("wte.weight").elements[static_cast<size_t>(ids[i]) * c.n_embd + e] +
               t.at("wpe.weight").elements[i * c.n_embd + e];
    }
    x.push_back(row);
  }
  for (size_t l = 0; l < c.n_layer; ++l) {
    const std::string h = "h." + std::to_string(l) + ".";
    const auto at = [&](const std::string& name) -> const TestTensor& {
      return t.at(h + name);
    };
    std::vector<Row> qkv;
    for (const Row& row : x) {
      qkv.push_back(Linear(
          Normalise(row, at("ln_1.weight"), at("ln_1.bias"), c.layer_norm_epsilon),
          at("attn.c_attn.weight"), at("attn.c_attn.bias")));
    }
    for (size_t i = 0; i < x.size(); ++i) {
      Row attended(c.n_embd, 0.0);
      for (size_t head = 0; head < c.n_head; ++head) {
        const Row given = AttendHead(c, qkv, i, head, window, &attended);
        if (probe) probe(l, head, i, given);
      }
      const Row projected =
          Linear(attended, at("attn.c_proj.weight"), at("attn.c_proj.bias"));
      for (size_t e = 0; e < c.n_embd; ++e) x[i][e] += projected[e];
      Row hidden = Linear(
          Normalise(x[i], at("ln_2.weight"), at("ln_2.bias"), c.layer_norm_epsilon),
          at("mlp.c_fc.weight"), at("mlp.c_fc.bias"));
      for (double& v : hidden) v = Gelu(v);
      const Row out = Linear(hidden, at("mlp.c_proj.weight"), at("mlp.c_proj.bias"));
      for (size_t e = 0; e < c.n_embd; ++e) x[i][e] += out[e];
    }
  }
  std::vector<Logits> logits;
  for (const Row& row : x) {
    const Row norm =
        Normalise(row, t.at("ln_f.weight"), t.at("ln_f.bias"), c.layer_norm_epsilon);
    Logits out(c.vocab_size);
    for (size_t v = 0; v < c.vocab_size; ++v) {
      double sum = 0;
      for (size_t e = 0; e < c.n_embd; ++e) {
        sum += norm[e] * t.at("wte.weight").elements[v * c.n_embd + e];
      }
      out[v] = static_cast<float>(sum);
    }
    logits.push_back(std::move(out));
  }
  return logits;
}

}  // namespace kvasm
