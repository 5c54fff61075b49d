// Conversations: sequences that go on, fork, roll back, and are saved.

#include <gtest/gtest.h>

#include "engine/sequence.h"
#include "random_model.h"
#include "reference.h"

namespace kvasm {
namespace {

struct Setting {
  size_t window;
  KvDtype dtype;
};

class SessionTest : public testing::TestWithParam<Setting> {
 protected:
  SessionTest() {
    config_ = {.n_layer = 2,
               .n_head = 4,
               .n_kv_head = 2,
               .n_embd = 32,
               .n_inner = 40,
               .n_positions = 100,
               .vocab_size = 61};
    file_ = ToSafetensors(RandomTensors(config_, random_));
    reference_ = std::make_unique<ReferenceModel>(config_, file_);
    engine_ = NewEngine();
  }

  std::unique_ptr<Engine> NewEngine(size_t context = 0) {
    const size_t block = Gpt2::GeometryOf(config_, GetParam().dtype).BlockBytes();
    return std::move(*LoadEngine(config_, file_,
                                 {.context_length = context,
                                  .window = GetParam().window,
                                  .kv_dtype = GetParam().dtype,
                                  .kv_bytes = 30 * block,
                                  .prefix_cache = false,
                                  .prefill_chunk = 8}));
  }

  std::vector<int32_t> Ids(size_t n) {
    return RandomIds(random_, n, config_.vocab_size);
  }

  // Draws, and checks the logits against an uncached pass over all ids before.
  void DrawAndCheck(Sequence* sequence, size_t tokens = 1) {
    for (size_t t = 0; t < tokens; ++t) {
      const std::vector<int32_t> before(sequence->ids().begin(), sequence->ids().end());
      NextToken(sequence);
      const auto expected = UncachedLogits(reference_->weights(), before,
                                           GetParam().window, GetParam().dtype);
      EXPECT_TRUE(SameBits(sequence->logits(), expected.back()));
    }
  }

  TestRandom random_{70};
  Gpt2Config config_;
  std::vector<uint8_t> file_;
  std::unique_ptr<ReferenceModel> reference_;
  std::unique_ptr<Engine> engine_;
};

TEST_P(SessionTest, ANewTurnComputesOnlyWhatIsNew) {
  auto chat = std::move(*engine_->StartSequence(Ids(20), {}));
  DrawAndCheck(chat.get(), 5);
  ASSERT_TRUE(chat->Append(Ids(7), {}).ok());
  EXPECT_EQ(chat->reused(), 24u);
  EXPECT_EQ(chat->computed(), 24u);
  DrawAndCheck(chat.get(), 5);
}

TEST_P(SessionTest, PenaltiesAreThoseOfAColdRunOnTheSameIdsAfterATurnOrARollBack) {
  const SequenceOptions options = {
      .sampler = {.temperature = 0,
                  .penalties = {.repetition = 1.3f, .frequency = 2, .presence = 1}}};
  const auto draw = [](Sequence* sequence, size_t count) {
    for (size_t i = 0; i < count; ++i) NextToken(sequence);
    return std::vector<int32_t>(sequence->ids().begin(), sequence->ids().end());
  };
  auto chat = std::move(*engine_->StartSequence(Ids(10), options));
  draw(chat.get(), 8);
  // What an earlier turn has drawn is prompt to the next.
  ASSERT_TRUE(chat->Append(Ids(3), options).ok());
  const std::vector<int32_t> turn(chat->ids().begin(), chat->ids().end());
  // A fork goes on with the counts of its original.
  const auto half = draw(chat.get(), 6);
  auto fork = std::move(*chat->Fork());
  const auto whole = draw(chat.get(), 6);
  chat->set_paused(true);
  fork->set_paused(false);
  EXPECT_EQ(draw(fork.get(), 6), whole);
  fork.reset();
  auto cold = std::move(*engine_->StartSequence(turn, options));
  EXPECT_EQ(draw(cold.get(), 12), whole);
  // Ids that are rolled back do not count any more, those that stay do, as prompt.
  ASSERT_TRUE(cold->Truncate(half.size()).ok());
  ASSERT_TRUE(cold->Append({}, options).ok());
  const auto again = draw(cold.get(), 6);
  cold.reset();
  auto colder = std::move(*engine_->StartSequence(half, options));
  EXPECT_EQ(draw(colder.get(), 6), again);
}

TEST_P(SessionTest, AnAppendThatDoesNotFitChangesNothing) {
  auto chat = std::move(*engine_->StartSequence(Ids(20), {}));
  DrawAndCheck(chat.get());
  EXPECT_EQ(chat->Append(Ids(80), {}).code(), StatusCode::kContextFull);
  EXPECT_EQ(chat->Append(std::vector<int32_t>{61}, {}).code(),
            StatusCode::kInvalidArgument);
  EXPECT_EQ(chat->Append(Ids(1), {.sampler = {.top_p = 2}}).code(),
            StatusCode::kInvalidArgument);
  EXPECT_EQ(chat->ids().size(), 21u);
  DrawAndCheck(chat.get());
}

TEST_P(SessionTest, AnEmptyAppendDrawsAnewFromTheSameLogits) {
  auto chat = std::move(*engine_->StartSequence(Ids(20), {}));
  NextToken(chat.get());
  const Logits first(chat->logits(), chat->logits() + config_.vocab_size);
  ASSERT_TRUE(chat->Truncate(20).ok());
  ASSERT_TRUE(chat->Append({}, {}).ok());
  NextToken(chat.get());
  EXPECT_TRUE(SameBits(chat->logits(), first));
}

TEST_P(SessionTest, ForksGoTheirOwnWays) {
  auto chat = std::move(*engine_->StartSequence(Ids(37), {}));
  DrawAndCheck(chat.get(), 3);
  auto fork = std::move(*chat->Fork());
  fork->set_paused(false);
  chat->set_paused(true);
  ASSERT_TRUE(fork->Append(Ids(5), {}).ok());
  DrawAndCheck(fork.get(), 10);
  chat->set_paused(false);
  fork->set_paused(true);
  DrawAndCheck(chat.get(), 10);
}

TEST_P(SessionTest, RollingBackGivesTheBitsOfAColdRun) {
  auto chat = std::move(*engine_->StartSequence(Ids(60), {}));
  DrawAndCheck(chat.get(), 3);
  for (const size_t size : {58u, 33u, 32u, 1u}) {
    ASSERT_TRUE(chat->Truncate(size).ok());
    ASSERT_TRUE(chat->Append({}, {}).ok());
    DrawAndCheck(chat.get(), 3);
  }
  EXPECT_EQ(chat->Truncate(1000).code(), StatusCode::kInvalidArgument);
}

TEST_P(SessionTest, DroppingTheLastTokenDrawnKeepsWhatIsComputed) {
  for (size_t prompt = 40; prompt < 60; ++prompt) {
    auto chat = std::move(*engine_->StartSequence(Ids(prompt), {}));
    NextToken(chat.get());
    ASSERT_TRUE(chat->Truncate(prompt).ok());
    EXPECT_EQ(chat->computed(), prompt);
    ASSERT_TRUE(chat->Append(Ids(3), {}).ok());
    EXPECT_EQ(chat->reused(), prompt);
    DrawAndCheck(chat.get());
  }
}

TEST_P(SessionTest, ASavedStateGoesOnWhereItWas) {
  auto chat = std::move(*engine_->StartSequence(Ids(50), {}));
  DrawAndCheck(chat.get(), 3);
  const std::vector<uint8_t> bytes = chat->Save().value();
  auto other = NewEngine();
  auto restored = std::move(*Sequence::Restore(other.get(), bytes));
  EXPECT_TRUE(std::equal(restored->ids().begin(), restored->ids().end(),
                         chat->ids().begin(), chat->ids().end()));
  EXPECT_EQ(restored->computed(), chat->computed());
  EXPECT_EQ(restored->Save().value(), bytes);
  restored->set_paused(false);
  DrawAndCheck(restored.get(), 10);
}

TEST_P(SessionTest, DamagedStatesAreRefused) {
  auto chat = std::move(*engine_->StartSequence(Ids(20), {}));
  NextToken(chat.get());
  const std::vector<uint8_t> bytes = chat->Save().value();
  const auto code = [&](const std::vector<uint8_t>& state) {
    return Sequence::Restore(engine_.get(), state).status().code();
  };
  for (size_t i = 0; i < bytes.size(); i += 1 + i / 50) {
    std::vector<uint8_t> damaged = bytes;
    damaged[i] ^= 0x40;
    EXPECT_EQ(code(damaged), StatusCode::kInvalidArgument) << i;
    EXPECT_EQ(code({bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(i)}),
              StatusCode::kInvalidArgument);
  }
  EXPECT_EQ(engine_->sequences().size(), 1u);
  EXPECT_EQ(code(bytes), StatusCode::kOk);
}

TEST_P(SessionTest, AnotherModelsOrEnginesStateIsRefused) {
  auto chat = std::move(*engine_->StartSequence(Ids(80), {}));
  NextToken(chat.get());
  const std::vector<uint8_t> bytes = chat->Save().value();
  const auto message = [&](Engine* engine) {
    return Sequence::Restore(engine, bytes).status().message();
  };
  // A fine-tune: the same shape, one bias changed.
  TestTensors tensors;
  {
    CollectingSink sink;
    ASSERT_TRUE(ReadSafetensors(file_, 4096, &sink).ok());
    tensors = sink.tensors;
  }
  tensors["h.1.ln_2.bias"].elements[3] += 0.5f;
  auto fine_tune =
      std::move(*LoadEngine(config_, ToSafetensors(tensors), engine_->options()));
  EXPECT_NE(message(fine_tune.get()).find("another model"), std::string::npos);
  EngineOptions options = engine_->options();
  options.window = options.window == 7 ? 8 : 7;
  auto windowed = std::move(*LoadEngine(config_, file_, options));
  EXPECT_NE(message(windowed.get()).find("window"), std::string::npos);
  options = engine_->options();
  options.kv_dtype = options.kv_dtype == KvDtype::kF32 ? KvDtype::kF16 : KvDtype::kF32;
  auto other_dtype = std::move(*LoadEngine(config_, file_, options));
  EXPECT_NE(message(other_dtype.get()).find("kvDtype"), std::string::npos);
  if (GetParam().window == 0) {
    EXPECT_NE(message(NewEngine(50).get()).find("context"), std::string::npos);
  }
}

TEST_P(SessionTest, TextbookSequencesNeitherForkNorSave) {
  auto concat =
      std::move(*engine_->StartSequence(Ids(5), {.cache = CacheStrategy::kConcat}));
  EXPECT_EQ(concat->Fork().status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(concat->Save().status().code(), StatusCode::kInvalidArgument);
}

INSTANTIATE_TEST_SUITE_P(
    Settings, SessionTest,
    testing::Values(Setting{0, KvDtype::kF32}, Setting{0, KvDtype::kF16},
                    Setting{0, KvDtype::kQ8}, Setting{1, KvDtype::kF32},
                    Setting{16, KvDtype::kF32}, Setting{21, KvDtype::kQ8}));

TEST(OverflowTest, ShiftingEqualsAColdRunOnTheKeptIdsT5T7B43) {
  TestRandom random(71);
  for (int round = 0; round < 60; ++round) {
    Gpt2Config config = RandomConfig(random);
    config.n_positions = Uniform(random, 4, 50);
    const size_t window = Uniform(random, 0, config.n_positions);
    const std::vector<uint8_t> file = ToSafetensors(RandomTensors(config, random));
    ReferenceModel m(config, file);
    auto engine =
        std::move(*LoadEngine(config, file, {.window = window, .prefill_chunk = 7}));
    const size_t n_keep = Uniform(random, 0, config.n_positions / 2 - 1);
    for (const CacheStrategy cache :
         {CacheStrategy::kBlock, CacheStrategy::kConcat, CacheStrategy::kNone}) {
      const auto prompt =
          RandomIds(random, Uniform(random, 1, config.n_positions), config.vocab_size);
      auto sequence = std::move(*engine->StartSequence(
          prompt, {.cache = cache, .overflow = Overflow::kShift, .n_keep = n_keep}));
      // What the context must be, kept by hand.
      std::vector<int32_t> context = prompt;
      for (size_t t = 0; t < 3 * config.n_positions; ++t) {
        if (context.size() > config.n_positions) {
          const size_t latest = config.n_positions / 2 - n_keep;
          context.erase(context.begin() + static_cast<std::ptrdiff_t>(n_keep),
                        context.end() - static_cast<std::ptrdiff_t>(latest));
        }
        const int32_t token = NextToken(sequence.get());
        if (t % 7 == 0 || context.size() < config.n_positions / 2 + 3) {
          ASSERT_TRUE(SameBits(sequence->logits(),
                               UncachedLogits(m.weights(), context, window).back()))
              << "round " << round << ", token " << t;
        }
        context.push_back(token);
      }
    }
  }
}

TEST(OverflowTest, KeepingHalfTheContextOrMoreIsRefused) {
  TestRandom random(72);
  Gpt2Config config = RandomConfig(random);
  config.n_positions = 20;
  auto engine = RandomEngine(config, random);
  const auto code = [&](size_t n_keep) {
    return engine
        ->StartSequence(std::vector<int32_t>{1},
                        {.overflow = Overflow::kShift, .n_keep = n_keep})
        .status()
        .code();
  };
  EXPECT_EQ(code(9), StatusCode::kOk);
  EXPECT_EQ(code(10), StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace kvasm
