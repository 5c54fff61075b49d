// Sequences that are computed for something else than tokens, and forks that draw from
// logits that are there.

#include <gtest/gtest.h>

#include <cmath>

#include "engine/sequence.h"
#include "random_model.h"
#include "reference.h"

namespace kvasm {
namespace {

using Ids = std::vector<int32_t>;

class OutputTest : public testing::Test {
 protected:
  OutputTest() {
    file_ = ToSafetensors(RandomTensors(config_, random_));
    reference_ = std::make_unique<ReferenceModel>(config_, file_);
  }

  std::unique_ptr<Engine> Load(const EngineOptions& options) {
    return std::move(*LoadEngine(config_, file_, options));
  }

  Ids RandomPrompt(size_t size) { return RandomIds(random_, size, config_.vocab_size); }

  // The final hidden states of one pass over all of the ids at once.
  std::vector<std::vector<float>> Hidden(const Ids& ids) {
    class LastLayerNorm : public ForwardObserver {
     public:
      void OnActivations(const char* name, size_t, const float* data, size_t rows,
                         size_t n, size_t stride) override {
        if (std::string(name) != "ln_f") return;
        for (size_t r = 0; r < rows; ++r) {
          states.emplace_back(data + r * stride, data + r * stride + n);
        }
      }
      void OnAttention(size_t, size_t, size_t, const float*, KeyRange) override {}
      std::vector<std::vector<float>> states;
    };
    Gpt2 model =
        std::move(*Gpt2::Create(&reference_->weights(), ids.size(), ids.size()));
    BlockPool pool =
        std::move(*BlockPool::Create(Gpt2::GeometryOf(config_), BlocksFor(ids.size())));
    KvCache cache(&pool, ids.size(), 0);
    EXPECT_TRUE(cache.Extend(ids.size()).ok());
    std::vector<BatchRow> rows;
    std::vector<size_t> logit_rows;
    for (size_t i = 0; i < ids.size(); ++i) {
      rows.push_back({ids[i], i, &cache});
      logit_rows.push_back(i);
    }
    LastLayerNorm observer;
    model.Forward(rows, logit_rows, &observer);
    return observer.states;
  }

  TestRandom random_{40};
  Gpt2Config config_ = SmallConfig();
  std::vector<uint8_t> file_;
  std::unique_ptr<ReferenceModel> reference_;
};

// Steps until the sequence is done; calls back after each step that it took part in.
template <typename Function>
void RunToEnd(Engine* engine, const Sequence* sequence, const Function& after_step) {
  for (int step = 0; step < 500; ++step) {
    for (const StepEvent& event : engine->Step()) {
      if (event.sequence != sequence) continue;
      ASSERT_NE(event.kind, StepEvent::Kind::kFailed) << sequence->status().message();
      ASSERT_NE(event.kind, StepEvent::Kind::kToken);
      after_step();
      if (event.kind == StepEvent::Kind::kDone) return;
    }
  }
  FAIL() << "not done after 500 steps";
}

TEST_F(OutputTest, EachRowOfLogitsHasTheBitsOfAnUncachedPass) {
  for (const size_t chunk : {1u, 5u, 8u, 50u}) {
    auto engine = Load({.prefill_chunk = chunk});
    const Ids ids = RandomPrompt(Uniform(random_, 1, 50));
    const auto expected = UncachedLogits(reference_->weights(), ids);
    for (int round = 0; round < 2; ++round) {  // The second finds a known prefix.
      auto all = std::move(*engine->StartSequence(ids, {.output = Output::kAllLogits}));
      size_t seen = 0;
      RunToEnd(engine.get(), all.get(), [&] {
        for (size_t i = 0; i < all->logits_count(); ++i, ++seen) {
          EXPECT_TRUE(SameBits(all->logits(i), expected[seen])) << "row " << seen;
        }
        EXPECT_EQ(all->logits(all->logits_count()), nullptr);
        EXPECT_EQ(seen, all->computed());
      });
      EXPECT_EQ(seen, ids.size());
      auto last =
          std::move(*engine->StartSequence(ids, {.output = Output::kLastLogits}));
      size_t rows = 0;
      RunToEnd(engine.get(), last.get(), [&] { rows += last->logits_count(); });
      ASSERT_EQ(rows, 1u);
      EXPECT_TRUE(SameBits(last->logits(), expected.back()));
      // Nothing is left to be computed.
      EXPECT_TRUE(engine->Step().empty());
    }
  }
}

TEST_F(OutputTest, LogProbabilitiesAreThoseOfTheLogitsBeforeEachId) {
  for (const size_t chunk : {1u, 8u, 50u}) {
    auto engine = Load({.prefill_chunk = chunk});
    for (const size_t size : {1u, 2u, 23u, 50u}) {
      const Ids ids = RandomPrompt(size);
      const auto logits = UncachedLogits(reference_->weights(), ids);
      auto sequence = std::move(*engine->StartSequence(
          ids, {.output = Output::kLogProbabilities, .vocab_limit = 60}));
      RunToEnd(engine.get(), sequence.get(), [] {});
      ASSERT_EQ(sequence->values().size(), size - 1);
      for (size_t i = 1; i < size; ++i) {
        const double value = sequence->values()[i - 1];
        if (ids[i] == 60) {
          EXPECT_EQ(value, -std::numeric_limits<double>::infinity());
        } else {
          EXPECT_EQ(value, LogProbabilities(logits[i - 1].data(), 60, ids[i], {}));
        }
      }
    }
  }
}

TEST_F(OutputTest, HiddenStatesAreThoseOfOnePassWhateverTheChunks) {
  const Ids ids = RandomPrompt(37);
  const auto states = Hidden(ids);
  std::vector<double> mean(config_.n_embd);
  for (const auto& state : states) {
    for (size_t i = 0; i < mean.size(); ++i) mean[i] += state[i];
  }
  for (double& value : mean) value /= static_cast<double>(ids.size());
  const std::vector<double> last(states.back().begin(), states.back().end());
  for (const size_t chunk : {1u, 7u, 50u}) {
    auto engine = Load({.prefill_chunk = chunk});
    for (const auto& [output, expected] :
         {std::pair(Output::kMeanHidden, mean), std::pair(Output::kLastHidden, last)}) {
      for (int round = 0; round < 2; ++round) {
        auto sequence = std::move(*engine->StartSequence(ids, {.output = output}));
        RunToEnd(engine.get(), sequence.get(), [] {});
        const auto values = sequence->values();
        EXPECT_EQ(std::vector(values.begin(), values.end()), expected);
        // The mean needs each row; the last one can build on a known prefix.
        EXPECT_EQ(sequence->reused() > 0, output == Output::kLastHidden);
      }
    }
  }
}

TEST_F(OutputTest, InABatchAndInATightPoolAllIsAsItIsAlone) {
  auto engine = Load({.kv_bytes = 4 * Gpt2::GeometryOf(config_).BlockBytes(),
                      .prefill_chunk = 8,
                      .max_batch = 3});
  const Ids ids = RandomPrompt(40);
  const auto logits = UncachedLogits(reference_->weights(), ids);
  std::vector<std::unique_ptr<Sequence>> others;
  for (int i = 0; i < 3; ++i) {
    others.push_back(std::move(*engine->StartSequence(RandomPrompt(9), {})));
  }
  auto mean = std::move(*engine->StartSequence(ids, {.output = Output::kMeanHidden}));
  auto scores =
      std::move(*engine->StartSequence(ids, {.output = Output::kLogProbabilities}));
  for (int step = 0; step < 2000; ++step) {
    for (auto& other : others) {
      if (other && other->remaining() < 20) other.reset();
    }
    if (engine->Step().empty()) break;
  }
  ASSERT_TRUE(scores->status().ok()) << scores->status().message();
  ASSERT_EQ(scores->values().size(), ids.size() - 1);
  for (size_t i = 1; i < ids.size(); ++i) {
    EXPECT_EQ(scores->values()[i - 1],
              LogProbabilities(logits[i - 1].data(), 61, ids[i], {}));
  }
  const auto states = Hidden(ids);
  double first = 0;
  for (const auto& state : states) first += state[0];
  EXPECT_EQ(mean->values()[0], first / static_cast<double>(ids.size()));
}

TEST_F(OutputTest, NothingButTokensCanBeHadOfTextbookCachesOrGoneOnWith) {
  auto engine = Load({});
  const Ids ids = {1, 2, 3};
  EXPECT_EQ(engine
                ->StartSequence(ids, {.output = Output::kAllLogits,
                                      .cache = CacheStrategy::kConcat})
                .status()
                .code(),
            StatusCode::kInvalidArgument);
  auto done = std::move(*engine->StartSequence(ids, {.output = Output::kAllLogits}));
  RunToEnd(engine.get(), done.get(), [] {});
  EXPECT_EQ(done->Append(ids, {.output = Output::kAllLogits}).code(),
            StatusCode::kInvalidArgument);
  EXPECT_EQ(done->Truncate(1).code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(done->ForkAndRedraw({}).status().code(), StatusCode::kInvalidArgument);
}

TEST_F(OutputTest, DamagedWeightsMakeNoLogProbabilitiesB68) {
  TestTensors tensors = RandomTensors(config_, random_);
  tensors["ln_f.weight"].elements[0] = std::numeric_limits<float>::quiet_NaN();
  auto engine = std::move(*LoadEngine(config_, ToSafetensors(tensors)));
  auto sequence = std::move(
      *engine->StartSequence(Ids{1, 2}, {.output = Output::kLogProbabilities}));
  EXPECT_EQ(engine->Step().front().kind, StepEvent::Kind::kFailed);
  EXPECT_EQ(sequence->status().code(), StatusCode::kNonFinite);
  auto echo =
      std::move(*engine->StartSequence(Ids{1, 2}, {.prompt_log_probabilities = 0}));
  EXPECT_EQ(engine->Step().front().kind, StepEvent::Kind::kFailed);
  EXPECT_EQ(echo->status().code(), StatusCode::kNonFinite);
}

std::vector<double> ValuesOf(const Sequence& sequence) {
  return {sequence.values().begin(), sequence.values().end()};
}

TEST_F(OutputTest, APromptsLogProbabilitiesComeBeforeItsFirstToken) {
  for (const CacheStrategy cache :
       {CacheStrategy::kBlock, CacheStrategy::kConcat, CacheStrategy::kNone}) {
    for (const size_t chunk : {1u, 8u, 50u}) {
      auto engine = Load({.prefill_chunk = chunk, .max_batch = 3});
      for (const size_t size : {1u, 2u, 40u}) {
        const Ids prompt = RandomPrompt(size);
        auto plain = std::move(*engine->StartSequence(prompt, {.cache = cache}));
        const int32_t first = NextToken(plain.get());
        const int32_t second = NextToken(plain.get());
        plain.reset();  // Leaves a prefix to be found.
        const auto expected = PromptLogProbabilities(
            UncachedLogits(reference_->weights(), prompt), prompt, 0, 4);
        auto sequence = std::move(*engine->StartSequence(
            prompt, {.cache = cache, .prompt_log_probabilities = 4}));
        EXPECT_EQ(NextToken(sequence.get()), first);
        EXPECT_EQ(ValuesOf(*sequence), expected);
        EXPECT_EQ(sequence->reused(), 0u);
        EXPECT_EQ(NextToken(sequence.get()), second);
        EXPECT_EQ(ValuesOf(*sequence), expected);
      }
    }
  }
}

TEST_F(OutputTest, EachTurnHasTheLogProbabilitiesOfItsOwnPrompt) {
  for (const size_t window : {0u, 20u}) {
    auto engine = Load({.window = window, .prefill_chunk = 7});
    auto sequence = std::move(*engine->StartSequence(RandomPrompt(3), {}));
    for (int turn = 0; turn < 4; ++turn) {
      NextToken(sequence.get());
      // All of it may be computed, or all but the last, or less.
      const size_t kept = turn == 1   ? sequence->computed()
                          : turn == 2 ? 2
                                      : sequence->ids().size();
      ASSERT_TRUE(sequence->Truncate(kept).ok());
      const size_t begin = sequence->ids().size();
      ASSERT_TRUE(
          sequence->Append(RandomPrompt(9), {.prompt_log_probabilities = 2}).ok());
      const Ids ids(sequence->ids().begin(), sequence->ids().end());
      NextToken(sequence.get());
      EXPECT_EQ(ValuesOf(*sequence),
                PromptLogProbabilities(
                    UncachedLogits(reference_->weights(), ids, window), ids, begin, 2));
    }
    ASSERT_TRUE(sequence->Append({}, {.prompt_log_probabilities = 2}).ok());
    NextToken(sequence.get());
    EXPECT_TRUE(sequence->values().empty());
  }
}

TEST_F(OutputTest, APromptsLogProbabilitiesOutliveATightPool) {
  auto engine = Load({.kv_bytes = 4 * Gpt2::GeometryOf(config_).BlockBytes(),
                      .prefill_chunk = 8,
                      .max_batch = 3});
  std::vector<std::unique_ptr<Sequence>> sequences;
  std::vector<Ids> prompts;
  for (int i = 0; i < 3; ++i) {
    prompts.push_back(RandomPrompt(25));
    sequences.push_back(std::move(
        *engine->StartSequence(prompts.back(), {.prompt_log_probabilities = 1})));
  }
  for (int step = 0; step < 2000; ++step) {
    engine->Step();
    bool all_drew = true;
    for (auto& sequence : sequences) {
      const bool drew = sequence->ids().size() >= 40;
      sequence->set_paused(drew);
      all_drew &= drew;
    }
    if (all_drew) break;
  }
  for (size_t i = 0; i < sequences.size(); ++i) {
    ASSERT_GE(sequences[i]->ids().size(), 40u) << sequences[i]->status().message();
    const auto logits = UncachedLogits(reference_->weights(), prompts[i]);
    EXPECT_EQ(ValuesOf(*sequences[i]),
              PromptLogProbabilities(logits, prompts[i], 0, 1));
  }
}

TEST_F(OutputTest, ARedrawingForkIsARunOfItsOwnWithoutAPrefill) {
  auto engine = Load({.kv_bytes = size_t{1} << 20, .prefill_chunk = 8});
  const Ids prompt = RandomPrompt(20);
  const auto options = [](uint64_t seed) {
    return SequenceOptions{
        .sampler = {.temperature = 2, .seed = seed, .penalties = {.repetition = 1.5f}}};
  };
  const auto finish = [&](Sequence* sequence) {
    while (sequence->ids().size() < 40) NextToken(sequence);
    return Ids(sequence->ids().begin(), sequence->ids().end());
  };
  std::vector<Ids> solo;
  for (const uint64_t seed : {1u, 2u, 3u}) {
    auto cold = Load({});
    auto sequence = std::move(*cold->StartSequence(prompt, options(seed)));
    solo.push_back(finish(sequence.get()));
  }
  auto first = std::move(*engine->StartSequence(prompt, options(1)));
  EXPECT_EQ(first->ForkAndRedraw(options(2)).status().code(),
            StatusCode::kInvalidArgument);
  NextToken(first.get());
  auto second = std::move(*first->ForkAndRedraw(options(2)));
  auto third = std::move(*first->ForkAndRedraw(options(3)));
  // The prompt's keys and values are there, and so are the logits.
  EXPECT_EQ(second->computed(), prompt.size());
  EXPECT_TRUE(
      SameBits(second->logits(), Logits(first->logits(), first->logits() + 61)));
  for (Sequence* sequence : {first.get(), second.get(), third.get()}) {
    sequence->set_paused(true);
  }
  size_t i = 0;
  for (Sequence* sequence : {first.get(), second.get(), third.get()}) {
    sequence->set_paused(false);
    EXPECT_EQ(finish(sequence), solo[i++]);
    sequence->set_paused(true);
  }
  EXPECT_EQ(second->Truncate(prompt.size()).code(), StatusCode::kOk);
  EXPECT_EQ(second->ForkAndRedraw(options(2)).status().code(),
            StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace kvasm
