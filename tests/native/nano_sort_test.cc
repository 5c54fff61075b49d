// Every intermediate of a trained model, as its own project computed them.
//
// The fixture's checkpoint has lost the biases of c_attn. Layer 0's can be told from
// the fixture's own activations (they are the constant that qkv differs by from ln_1
// times the weights), which one position yields and the others verify; those of layers
// 1 and 2 can't, so the test covers layer 0 and the head.

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <numeric>

#include "golden.h"
#include "kernels/attention.h"
#include "kernels/layer_norm.h"
#include "kernels/matmul.h"
#include "model/gpt2_checkpoint.h"
#include "random_model.h"

namespace kvasm {
namespace {

constexpr size_t kBatch = 3;
constexpr size_t kTokens = 11;
constexpr size_t kEmbd = 48;
constexpr size_t kHeads = 3;
constexpr size_t kHeadDim = 16;
// The fixture was computed in float32, by other kernels.
constexpr float kTolerance = 1e-5f;

const std::string& FixturePath() {
  static const std::string path =
      std::string(KVASM_SOURCE_DIR) + "/../shared/fixtures/gpt-nano-sort/";
  return path;
}

class NanoSortTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists(FixturePath())) {
      GTEST_SKIP() << "the gpt-nano-sort fixture is not on this machine";
    }
    tensors_ = Collect("model.safetensors");
    partials_ = Collect("partials.safetensors");
  }

  static TestTensors Collect(const std::string& name) {
    CollectingSink sink;
    EXPECT_TRUE(ReadSafetensors(ReadBytes(FixturePath() + name), 4096, &sink).ok());
    return sink.tensors;
  }

  const std::vector<float>& Partial(const std::string& name) {
    return partials_.at(name).elements;
  }

  void ExpectNear(const float* actual, const float* expected, size_t n,
                  const std::string& name) {
    for (size_t i = 0; i < n; ++i) {
      ASSERT_NEAR(actual[i], expected[i],
                  kTolerance * std::max(1.0f, std::fabs(expected[i])))
          << name << "[" << i << "]";
    }
  }

  // What ln_1 of row 0 lacks to be qkv of row 0.
  std::vector<float> RecoverAttentionBias() {
    const std::vector<float>& weight =
        tensors_.at("transformer.h.0.attn.c_attn.weight").elements;
    std::vector<float> bias(3 * kEmbd);
    for (size_t o = 0; o < bias.size(); ++o) {
      double sum = 0;
      for (size_t k = 0; k < kEmbd; ++k) {
        sum += static_cast<double>(Partial("ln1")[k]) * weight[k * bias.size() + o];
      }
      bias[o] = static_cast<float>(Partial("qkv")[o] - sum);
    }
    return bias;
  }

  TestTensors tensors_;
  TestTensors partials_;
};

class Layer0Observer : public ForwardObserver {
 public:
  void OnActivations(const char* name, size_t layer, const float* data, size_t rows,
                     size_t n, size_t stride) override {
    if (layer != 0) return;
    std::vector<float>& to = activations[name];
    for (size_t r = 0; r < rows; ++r) {
      to.insert(to.end(), data + r * stride, data + r * stride + n);
    }
  }
  void OnAttention(size_t layer, size_t head, size_t row, const float* probabilities,
                   KeyRange range) override {
    if (layer != 0) return;
    attention[head * kTokens + row].assign(probabilities, probabilities + range.end);
  }

  std::map<std::string, std::vector<float>> activations;
  std::map<size_t, std::vector<float>> attention;
};

TEST_F(NanoSortTest, EveryIntermediateOfLayer0) {
  StatusOr<Gpt2Config> parsed =
      ParseGpt2Config(ReadFile(FixturePath() + "config.json"));
  ASSERT_TRUE(parsed.ok());
  Gpt2Config config = parsed.value();
  config.n_layer = 1;
  for (const char* layer : {"1", "2"}) {
    std::erase_if(tensors_, [&](const auto& tensor) {
      return tensor.first.find("h." + std::string(layer) + ".") != std::string::npos;
    });
  }
  tensors_["transformer.h.0.attn.c_attn.bias"] = {{3 * kEmbd}, RecoverAttentionBias()};
  Gpt2CheckpointSink sink(config);
  ASSERT_TRUE(ReadSafetensors(ToSafetensors(tensors_), 4096, &sink).ok());
  Gpt2 model = std::move(*Gpt2::Create(&sink.weights(), kTokens, kTokens));
  BlockPool pool = std::move(*BlockPool::Create(Gpt2::GeometryOf(config), 1));
  KvCache cache(&pool, kTokens);

  for (size_t b = 0; b < kBatch; ++b) {
    cache.Clear();
    ASSERT_TRUE(cache.Extend(kTokens).ok());
    std::vector<BatchRow> rows;
    for (size_t t = 0; t < kTokens; ++t) {
      rows.push_back(
          {static_cast<int32_t>(Partial("idx")[b * kTokens + t]), t, &cache});
    }
    Layer0Observer observer;
    model.Forward(rows, {}, &observer);
    for (const auto& [ours, theirs] :
         std::map<std::string, std::string>{{"embedding", "x"},
                                            {"ln_1", "ln1"},
                                            {"c_attn", "qkv"},
                                            {"attention", "y"},
                                            {"c_proj", "yProj"},
                                            {"residual_1", "attnResid"},
                                            {"ln_2", "ln2"},
                                            {"c_fc", "fc"},
                                            {"gelu", "gelu"},
                                            {"mlp.c_proj", "mlp"},
                                            {"residual_2", "block0"}}) {
      const std::vector<float>& actual = observer.activations.at(ours);
      ExpectNear(actual.data(), Partial(theirs).data() + b * actual.size(),
                 actual.size(), theirs);
    }
    for (size_t h = 0; h < kHeads; ++h) {
      for (size_t t = 0; t < kTokens; ++t) {
        const size_t row = ((b * kHeads + h) * kTokens + t) * kTokens;
        ExpectNear(observer.attention.at(h * kTokens + t).data(),
                   Partial("attSm").data() + row, t + 1, "attSm");
        AlignedBuffer<float> scores = std::move(*AlignedBuffer<float>::Create(16, ""));
        AttentionScores(
            observer.activations.at("c_attn").data() + t * 3 * kEmbd + h * kHeadDim,
            cache.Keys(0, h), {0, t + 1},
            1.0f / std::sqrt(static_cast<float>(kHeadDim)), scores.data());
        ExpectNear(scores.data(), Partial("att").data() + row, t + 1, "att");
      }
    }
  }
}

TEST_F(NanoSortTest, TheHeadFromTheLastLayerOn) {
  const size_t rows = kBatch * kTokens;
  const auto buffer = [](size_t n) {
    return std::move(*AlignedBuffer<float>::Create(n, ""));
  };
  AlignedBuffer<float> x = buffer(rows * kEmbd), norm = buffer(rows * kEmbd);
  AlignedBuffer<float> gain = buffer(kEmbd), bias = buffer(kEmbd);
  std::copy_n(Partial("block2").data(), x.size(), x.data());
  std::copy_n(tensors_.at("transformer.ln_f.weight").elements.data(), kEmbd,
              gain.data());
  std::copy_n(tensors_.at("transformer.ln_f.bias").elements.data(), kEmbd, bias.data());
  LayerNorm(x.data(), rows, kEmbd, kEmbd, gain.data(), bias.data(), 1e-5f, norm.data());
  ExpectNear(norm.data(), Partial("ln_f").data(), norm.size(), "ln_f");

  PackedMatrix head = std::move(*PackedMatrix::Create(kEmbd, 3, ""));
  MatrixWriter writer = std::move(*MatrixWriter::Create(3, head.dtype(), ""));
  writer.Write(MatrixOrder::kLinear, 0, tensors_.at("lm_head.weight").elements.data(),
               3 * kEmbd, &head);
  AlignedBuffer<float> logits = buffer(rows * 16);
  MatMul({norm.data(), rows, kEmbd, nullptr}, head, nullptr, logits.data(), 16);
  for (size_t r = 0; r < rows; ++r) {
    ExpectNear(logits.data() + r * 16, Partial("lm_head").data() + r * 3, 3, "lm_head");
  }
}

}  // namespace
}  // namespace kvasm
