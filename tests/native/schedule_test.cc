// Random schedules: sequences that start, step, fork, roll back, go on, pause, are
// saved and dropped, in a pool that is too small for all of them. Each logits row must
// have the bits of an uncached pass over its sequence's ids by one thread, and no block
// may leak. A failing schedule is shrunk, and printed.
//
// KVASM_SCHEDULES sets how many are run, KVASM_SCHEDULE_SEED the first.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <sstream>

#include "base/native_threads.h"
#include "engine/sequence.h"
#include "random_model.h"
#include "reference.h"

namespace kvasm {
namespace {

struct Operation {
  enum class Kind {
    kStart,
    kStep,
    kDrop,
    kFork,
    kTruncate,
    kAppend,
    kPause,
    kSaveAndRestore,
    kRedraw,
    kCount,
  };
  Kind kind;
  size_t which;  // Of the sequences there are, modulo their number.
  size_t amount;
  uint32_t seed;
};

std::string ToString(const std::vector<Operation>& operations) {
  static const char* const kNames[] = {"start",  "step",  "drop", "fork",  "truncate",
                                       "append", "pause", "save", "redraw"};
  std::ostringstream out;
  for (const Operation& o : operations) {
    out << "  {" << kNames[static_cast<size_t>(o.kind)] << ", which " << o.which
        << ", amount " << o.amount << ", seed " << o.seed << "}\n";
  }
  return out.str();
}

// One for all schedules, as they would spend their time on starting threads.
ThreadPool* Threads(size_t threads) {
  static NativeThreads two(2), eight(8);
  return threads == 1 ? nullptr : threads == 2 ? two.pool() : eight.pool();
}

class World {
 public:
  explicit World(uint32_t seed) : random_(seed) {
    Gpt2Config config;
    config.n_layer = Uniform(random_, 1, 2);
    config.n_kv_head = Uniform(random_, 1, 2);
    config.n_head = config.n_kv_head * Uniform(random_, 1, 2);
    // Mostly small, now and then as large as real heads are.
    const size_t head_dim = Uniform(random_, 0, 15) == 0 ? Uniform(random_, 33, 128)
                                                         : Uniform(random_, 1, 12);
    config.n_embd = config.n_head * head_dim;
    // Now and then more outputs than one thread claims at a time.
    config.n_inner = Uniform(random_, 0, 15) == 0 ? Uniform(random_, 130, 300)
                                                  : Uniform(random_, 1, 20);
    config.n_positions = Uniform(random_, 2, 70);
    config.vocab_size = Uniform(random_, 2, 30);
    file_ = ToSafetensors(RandomTensors(config, random_));
    const WeightDtype dtype = RandomDtype(random_);
    reference_ = std::make_unique<ReferenceModel>(config, file_, dtype);
    options_.context_length = Uniform(random_, 1, config.n_positions);
    if (Uniform(random_, 0, 1) == 0) options_.window = Uniform(random_, 1, 70);
    options_.kv_dtype = static_cast<KvDtype>(Uniform(random_, 0, 2));
    options_.prefix_cache = Uniform(random_, 0, 3) != 0;
    options_.prefill_chunk = Uniform(random_, 1, 24);
    options_.max_batch = Uniform(random_, 1, 4);
    options_.kv_bytes = Uniform(random_, 1, 12) *
                        Gpt2::GeometryOf(config, options_.kv_dtype).BlockBytes();
    options_.thread_pool = Threads(Uniform(random_, 1, 3));
    engine_ = std::move(*LoadEngine(config, file_, options_, dtype));
    for (auto& stem : stems_) stem = RandomIds(random_, 70, config.vocab_size);
  }

  // Empty if all is well.
  std::string Run(const std::vector<Operation>& operations) {
    for (const Operation& operation : operations) {
      Apply(operation);
      if (!failure_.empty()) return failure_;
    }
    Drain();
    while (!players_.empty() && failure_.empty()) Drop(0);
    CheckPool();
    return failure_;
  }

 private:
  // A sequence, and what it drew from so far.
  struct Player {
    std::unique_ptr<Sequence> sequence;
    std::vector<int32_t> ids;  // Before its next token.
    size_t drawn = 0;
    bool draws_tokens = true;
    std::vector<std::pair<size_t, Logits>> observed;  // By the number of ids before.
    // What the next token is to come with: the log-probabilities of the prompt from
    // this id on, and of so many likeliest.
    std::optional<std::pair<size_t, size_t>> scored;
  };

  void Fail(const std::string& what) {
    if (failure_.empty()) failure_ = what;
  }

  // Starts like one of two stems, so that prefixes are shared.
  std::vector<int32_t> Prompt(const Operation& o) {
    TestRandom random(o.seed);
    const std::vector<int32_t>& stem = stems_[o.seed % 2];
    const size_t size = o.amount % options_.context_length + 1;
    const size_t shared = Uniform(random, 0, size);
    std::vector<int32_t> ids(stem.begin(),
                             stem.begin() + static_cast<std::ptrdiff_t>(shared));
    const auto tail = RandomIds(random, size - shared, engine_->config().vocab_size);
    ids.insert(ids.end(), tail.begin(), tail.end());
    return ids;
  }

  SequenceOptions Options(const Operation& o) {
    TestRandom random(o.seed + 1);
    SequenceOptions options;
    if (Uniform(random, 0, 7) == 0) options.cache = CacheStrategy::kConcat;
    if (Uniform(random, 0, 7) == 0) options.cache = CacheStrategy::kNone;
    if (Uniform(random, 0, 2) == 0 && options_.context_length > 1) {
      options.overflow = Overflow::kShift;
      options.n_keep = Uniform(random, 0, options_.context_length / 2 - 1);
    }
    options.reuse_prefix = Uniform(random, 0, 5) != 0;
    if (Uniform(random, 0, 3) == 0) {
      options.prompt_log_probabilities = Uniform(random, 0, 2);
    }
    if (options.cache == CacheStrategy::kBlock && Uniform(random, 0, 5) == 0) {
      options.output =
          Uniform(random, 0, 1) == 0 ? Output::kAllLogits : Output::kLastLogits;
    }
    options.sampler.seed = o.seed;
    if (Uniform(random, 0, 2) == 0) options.sampler.temperature = 0;
    if (Uniform(random, 0, 2) == 0) options.sampler.penalties.repetition = 1.5f;
    if (Uniform(random, 0, 2) == 0) options.sampler.penalties.frequency = 0.5f;
    if (Uniform(random, 0, 2) == 0) options.sampler.min_p = 0.1f;
    return options;
  }

  void Apply(const Operation& o) {
    if (o.kind == Operation::Kind::kStart) {
      const SequenceOptions options = Options(o);
      auto sequence = engine_->StartSequence(Prompt(o), options);
      if (sequence.ok()) {
        Add(std::move(*sequence));
        Player& added = players_.back();
        added.draws_tokens = options.output == Output::kTokens;
        if (added.draws_tokens && options.prompt_log_probabilities) {
          added.scored.emplace(0, *options.prompt_log_probabilities);
        }
      } else if (sequence.status().code() != StatusCode::kOutOfMemory) {
        Fail("start: " + sequence.status().message());
      }
      return;
    }
    if (players_.empty()) return;
    const size_t i = o.which % players_.size();
    Player& player = players_[i];
    Sequence* sequence = player.sequence.get();
    switch (o.kind) {
      case Operation::Kind::kStep:
        for (size_t s = 0; s < o.amount % 12 + 1 && failure_.empty(); ++s) Step();
        break;
      case Operation::Kind::kDrop:
        Drop(i);
        break;
      case Operation::Kind::kFork: {
        auto fork = sequence->Fork();
        if (fork.ok()) Add(std::move(*fork));
        break;
      }
      case Operation::Kind::kTruncate:
        if (!player.draws_tokens) break;
        Verify(player);
        if (!sequence->Truncate(o.amount % (sequence->ids().size() + 1)).ok()) {
          Fail("truncate refused");
        }
        player.scored.reset();
        Resync(player);
        break;
      case Operation::Kind::kAppend: {
        // Before the ids are taken over: a shift may have replaced them without a word.
        Verify(player);
        TestRandom random(o.seed);
        SequenceOptions options = Options(o);
        options.output = Output::kTokens;
        const Status status = sequence->Append(
            RandomIds(random, o.amount % 20, engine_->config().vocab_size), options);
        if (!status.ok()) break;
        player.scored.reset();
        if (options.prompt_log_probabilities) {
          player.scored.emplace(player.ids.size(), *options.prompt_log_probabilities);
        }
        Resync(player);
        break;
      }
      case Operation::Kind::kRedraw: {
        SequenceOptions options = Options(o);
        options.output = Output::kTokens;
        auto fork = sequence->ForkAndRedraw(options);
        if (!fork.ok()) break;
        Add(std::move(*fork));
        Player& added = players_.back();
        const float* logits = added.sequence->logits();
        added.observed.emplace_back(
            added.ids.size() - 1,
            Logits(logits, logits + engine_->config().vocab_size));
        break;
      }
      case Operation::Kind::kPause:
        sequence->set_paused(o.amount % 2 == 0);
        break;
      case Operation::Kind::kSaveAndRestore: {
        const auto bytes = sequence->Save();
        if (!bytes.ok() || !sequence->status().ok()) break;
        auto restored = Sequence::Restore(engine_.get(), bytes.value());
        if (restored.ok()) {
          Add(std::move(*restored));
        } else if (restored.status().code() != StatusCode::kOutOfMemory) {
          Fail("restore: " + restored.status().message());
        }
        break;
      }
      default:
        break;
    }
  }

  void Add(std::unique_ptr<Sequence> sequence) {
    players_.push_back({std::move(sequence), {}});
    Resync(players_.back());
  }

  void Resync(Player& player) {
    player.ids.assign(player.sequence->ids().begin(), player.sequence->ids().end());
    std::erase_if(player.observed,
                  [&](const auto& o) { return o.first > player.ids.size(); });
  }

  void Drop(size_t i) {
    Verify(players_[i]);
    players_.erase(players_.begin() + static_cast<std::ptrdiff_t>(i));
  }

  // The bits of everything drawn since the last time.
  void Verify(Player& player) {
    // A sequence that was set back has computed some of its rows of logits again.
    size_t size = 0;
    for (const auto& [ids, logits] : player.observed) size = std::max(size, ids);
    if (size == 0) return;
    const auto expected = UncachedLogits(
        reference_->weights(),
        {player.ids.begin(), player.ids.begin() + static_cast<std::ptrdiff_t>(size)},
        engine_->options().window, options_.kv_dtype);
    for (const auto& [ids, logits] : player.observed) {
      if (!SameBits(logits.data(), expected[ids - 1])) {
        Fail("other bits after " + std::to_string(ids) + " ids");
      }
    }
    player.observed.clear();
  }

  // What a sequence tells of its prompt with the first token after it.
  void VerifyValues(Player& player) {
    const auto expected = PromptLogProbabilities(
        UncachedLogits(reference_->weights(), player.ids, engine_->options().window,
                       options_.kv_dtype),
        player.ids, player.scored->first, player.scored->second);
    const auto values = player.sequence->values();
    if (!std::equal(values.begin(), values.end(), expected.begin(), expected.end())) {
      Fail("other log-probabilities of a prompt");
    }
    player.scored.reset();
  }

  bool HasWork(const Player& player) const {
    return player.sequence->status().ok() && player.sequence->remaining() > 0;
  }

  bool Step() {
    const auto events = engine_->Step();
    for (const StepEvent& event : events) {
      Player& player = *std::find_if(
          players_.begin(), players_.end(),
          [&](const Player& p) { return p.sequence.get() == event.sequence; });
      Sequence* sequence = event.sequence;
      if (event.kind == StepEvent::Kind::kFailed) {
        CheckFailure(*sequence);
        continue;
      }
      // A shift replaces the context, at the first pass over it.
      const size_t drawn = event.kind == StepEvent::Kind::kToken ? 1 : 0;
      if (sequence->ids().size() - drawn < player.ids.size()) {
        Verify(player);
        if (player.ids.size() != options_.context_length + 1) Fail("shifted too early");
        player.ids.assign(sequence->ids().begin(),
                          sequence->ids().end() - static_cast<std::ptrdiff_t>(drawn));
      }
      for (size_t i = 0; i < sequence->logits_count(); ++i) {
        const float* logits = sequence->logits(i);
        player.observed.emplace_back(
            sequence->computed() - sequence->logits_count() + i + 1,
            Logits(logits, logits + engine_->config().vocab_size));
      }
      if (drawn > 0 && player.scored) VerifyValues(player);
      if (drawn > 0) player.ids.push_back(event.token);
      if (drawn > 0 || event.kind == StepEvent::Kind::kDone) ++player.drawn;
    }
    return !events.empty();
  }

  // Only a full context, and what does not fit even alone, may fail.
  void CheckFailure(const Sequence& sequence) {
    const StatusCode code = sequence.status().code();
    if (code == StatusCode::kContextFull && sequence.remaining() == 0) return;
    if (code == StatusCode::kOutOfMemory &&
        BlocksFor(sequence.ids().size()) > engine_->pool().blocks()) {
      return;
    }
    Fail("failed: " + sequence.status().message());
  }

  // Everybody gets to draw again: nobody starves, nothing is stuck.
  void Drain() {
    std::vector<size_t> before;
    for (const Player& player : players_) {
      player.sequence->set_paused(false);
      before.push_back(player.sequence->computed() < player.sequence->ids().size()
                           ? player.drawn
                           : SIZE_MAX);
    }
    for (int step = 0; step < 2000 && failure_.empty(); ++step) {
      bool all = true;
      for (size_t i = 0; i < players_.size(); ++i) {
        const bool waits = before[i] != SIZE_MAX &&
                           players_[i].sequence->status().ok() &&
                           players_[i].drawn <= before[i];
        all &= !waits;
        // Who has drawn makes room.
        if (!waits) players_[i].sequence->set_paused(true);
      }
      if (all) return;
      if (!Step()) return Fail("stuck: somebody waits, and nothing is computed");
    }
    Fail("somebody starves");
  }

  void CheckPool() {
    const BlockPool& pool = engine_->pool();
    const size_t in_tree =
        engine_->prefix_stats() ? engine_->prefix_stats()->blocks : 0;
    if (pool.free_blocks() + in_tree != pool.blocks()) Fail("blocks have leaked");
  }

  TestRandom random_;
  EngineOptions options_;
  std::vector<uint8_t> file_;
  std::unique_ptr<ReferenceModel> reference_;
  std::unique_ptr<Engine> engine_;
  std::vector<int32_t> stems_[2];
  std::vector<Player> players_;
  std::string failure_;
};

std::vector<Operation> RandomOperations(uint32_t seed) {
  TestRandom random(seed);
  std::vector<Operation> operations(Uniform(random, 3, 25));
  for (Operation& o : operations) {
    // Half of them steps.
    o.kind = Uniform(random, 0, 1) == 0
                 ? Operation::Kind::kStep
                 : static_cast<Operation::Kind>(Uniform(
                       random, 0, static_cast<size_t>(Operation::Kind::kCount) - 1));
    o.which = Uniform(random, 0, 100);
    o.amount = Uniform(random, 0, 1000);
    o.seed = static_cast<uint32_t>(Uniform(random, 0, 1 << 20));
  }
  operations.front().kind = Operation::Kind::kStart;
  return operations;
}

// Drops operations while the schedule goes on failing.
std::vector<Operation> Shrink(uint32_t seed, std::vector<Operation> operations) {
  for (bool shrunk = true; shrunk;) {
    shrunk = false;
    for (size_t i = 0; i < operations.size(); ++i) {
      std::vector<Operation> fewer = operations;
      fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(i));
      if (World(seed).Run(fewer).empty()) continue;
      operations = fewer;
      shrunk = true;
      break;
    }
  }
  return operations;
}

size_t FromEnvironment(const char* name, size_t fallback) {
  const char* value = std::getenv(name);
  return value ? std::strtoul(value, nullptr, 10) : fallback;
}

TEST(ScheduleTest, EveryRandomScheduleGivesTheBitsOfUncachedPasses) {
  const size_t count = FromEnvironment("KVASM_SCHEDULES", 3000);
  const size_t first = FromEnvironment("KVASM_SCHEDULE_SEED", 1);
  for (size_t i = 0; i < count; ++i) {
    const uint32_t seed = static_cast<uint32_t>(first + i);
    const std::vector<Operation> operations = RandomOperations(seed);
    const std::string failure = World(seed).Run(operations);
    if (failure.empty()) continue;
    const std::vector<Operation> shrunk = Shrink(seed, operations);
    FAIL() << "schedule " << seed << ": " << World(seed).Run(shrunk) << "\n"
           << ToString(shrunk);
  }
}

}  // namespace
}  // namespace kvasm
