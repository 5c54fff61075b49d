// One generation, or one conversation: a prompt, the tokens drawn after it, and the
// cache of both.

#ifndef KVASM_ENGINE_SEQUENCE_H_
#define KVASM_ENGINE_SEQUENCE_H_

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/status.h"
#include "cache/kv_cache.h"
#include "engine/engine.h"
#include "sampling/log_probabilities.h"
#include "sampling/sampler.h"

namespace kvasm {

// How a sequence keeps its keys and values. All three yield the same bits.
enum class CacheStrategy {
  kBlock,  // In the engine's pool, allocated beforehand; computed in batches with other
           // sequences.
  kConcat,  // The textbook's first cache: reallocated and copied for each token.
  kNone,    // Not at all: everything is computed anew for each token.
};

// What happens when the context is full. A cached key carries its absolute position, so
// keys cannot move to make room.
enum class Overflow {
  kStop,   // No more tokens: remaining() is 0.
  kShift,  // Keep the first n_keep ids and the latest ones, half a context in all, and
           // compute them anew from position 0.
};

// What a sequence is computed for. All but kTokens take the block cache, are done when
// all of their ids are computed, and then hold none of it: they can be read, but not be
// changed, forked or saved.
enum class Output {
  kTokens,            // To draw tokens after its ids.
  kLastLogits,        // The logits after its last id,
  kAllLogits,         // or after each of them.
  kLogProbabilities,  // Of each id but the first, after those before it.
  kLastHidden,        // The final hidden state, after ln_f, of its last id,
  kMeanHidden,        // or the mean of all of them.
};

struct SequenceOptions {
  Output output = Output::kTokens;
  CacheStrategy cache = CacheStrategy::kBlock;
  SamplerOptions sampler;
  // Only ids below this are drawn; 0: the whole vocabulary.
  size_t vocab_limit = 0;
  Overflow overflow = Overflow::kStop;
  size_t n_keep = 0;  // For Overflow::kShift; less than half the context.
  // Whether to look for the prompt's prefix among earlier ones, where the engine has a
  // prefix cache.
  bool reuse_prefix = true;
  // For Output::kTokens: keeps, as values(), the log-probability of each id of the
  // prompt, and this many of the likeliest. No part of the prompt is then taken over
  // from earlier ones, since each of its rows needs logits.
  std::optional<size_t> prompt_log_probabilities;
};

class Sequence {
 public:
  ~Sequence();
  Sequence(const Sequence&) = delete;
  Sequence& operator=(const Sequence&) = delete;

  Engine* engine() const { return engine_; }
  // Counts up from 1 over the engine's life.
  uint32_t id() const { return id_; }

  // Not ok once the sequence has failed; it computes nothing more then.
  const Status& status() const { return status_; }

  // The ids of the context: prompt, tokens drawn, and what was appended.
  std::span<const int32_t> ids() const { return ids_; }
  // How many of them have been computed; the last one drawn never is before the next
  // step.
  size_t computed() const { return computed_; }
  // Tokens of the prompt whose keys and values were there already.
  size_t reused() const { return reused_; }

  // Tokens that may still be drawn: context_length + 1 - ids, since the last one drawn
  // needs no position of its own. No limit for Overflow::kShift.
  size_t remaining() const;

  // [vocab_size]: what the last token was drawn from, or what kLastLogits or kAllLogits
  // ask for: the last logits_count() of the ids computed have logits(0), logits(1), ...
  // Null beyond. Valid until the next Engine::Step, or change of the sequence.
  const float* logits(size_t i = 0) const;
  size_t logits_count() const { return logits_count_; }

  // For Output::kLogProbabilities, of ids()[1], ids()[2], ..., as far as they are
  // computed; those that may not be drawn have the probability 0. For kLastHidden and
  // kMeanHidden, when done: [n_embd]. For kTokens with prompt_log_probabilities = n:
  // [ids, 1 + 2 n], for each id of the last Append (but the context's first) as far as
  // they are computed: its log-probability, then of each of the n likeliest (as many as
  // may be drawn at the most) its id and log-probability.
  std::span<const double> values() const { return values_; }

  // The log-probability of the last token drawn, and in `top` those of the likeliest:
  // what the model says, before temperature and any other option, about the ids that
  // may be drawn. Preconditions: logits() are valid, and so many ids may be drawn.
  float LogProbabilities(std::span<TokenLogProbability> top) const;

  // A paused sequence takes no part in Engine::Step; new sequences are not paused.
  void set_paused(bool paused) { paused_ = paused; }

  // Goes on with more ids, such as the next turn of a conversation, and new options for
  // drawing (the cache strategy stays). Errors as of Engine::StartSequence; nothing
  // changes then.
  Status Append(std::span<const int32_t> ids, const SequenceOptions& options);

  // Rolls back to the first `size` ids; kInvalidArgument if there are fewer. What is
  // computed of them stays, unless the window has dropped what the next token would
  // see: then all will be computed anew. To draw from where it is now, append, be it
  // nothing.
  Status Truncate(size_t size);

  // A paused copy that shares every block of the cache.
  StatusOr<std::unique_ptr<Sequence>> Fork() const;

  // A copy that draws the last token anew, from the same logits by options of its own:
  // another completion of the same prompt, which is not computed again. Only while
  // logits() are valid; not paused.
  StatusOr<std::unique_ptr<Sequence>> ForkAndRedraw(
      const SequenceOptions& options) const;

  // The ids and the cache as bytes, for Restore on an engine with the same model and
  // options.
  StatusOr<std::vector<uint8_t>> Save() const;
  // A paused sequence. kInvalidArgument for bytes that are damaged, or another model's.
  static StatusOr<std::unique_ptr<Sequence>> Restore(Engine* engine,
                                                     std::span<const uint8_t> bytes);

  CacheStrategy strategy() const { return strategy_; }
  const KvCache& cache() const { return own_ ? own_->cache : cache_; }
  // Bytes of cache memory outside the engine's pool, for the textbook strategies.
  size_t own_cache_bytes() const { return own_ ? own_->pool.reserved_bytes() : 0; }

 private:
  friend class Engine;

  // A cache with memory of its own.
  struct OwnCache {
    OwnCache(BlockPool pool_in, size_t max_tokens, size_t window)
        : pool(std::move(pool_in)), cache(&pool, max_tokens, window) {}
    BlockPool pool;
    KvCache cache;
  };

  static constexpr size_t kNoLogits = std::numeric_limits<size_t>::max();

  Sequence(Engine* engine, CacheStrategy strategy);

  Status Configure(const SequenceOptions& options);
  bool has_work() const { return status_.ok() && !paused_ && computed_ < ids_.size(); }
  bool is_decoding() const {
    return output_ == Output::kTokens && ids_.size() - computed_ == 1 && computed_ > 0;
  }
  // Whether what is asked for needs the logits after the id at `position`.
  bool NeedsLogits(size_t position) const;
  // Whether all ids have to be computed, none taken over from another sequence.
  bool NeedsAllRows() const;
  // Makes room at the end of the context, if it is full. An error ends the sequence.
  Status HandleOverflow();
  // Forgets what was computed beyond the first `computed` ids, or all, where the window
  // has dropped what the next one sees.
  void RollBack(size_t computed);
  // Forgets what was computed; it will be computed anew, to the same bits.
  void SetBack();
  // Starts an empty cache with what the prefix tree knows, if that leaves room for the
  // rest.
  Status Admit();
  void AfterCompute(size_t count);
  // What a finished sequence has computed may serve a later one.
  void LeaveToLaterOnes();
  StepEvent Draw(size_t logits_row);
  // What the forward pass has computed for the last ids: `rows` of the batch from
  // `first_row` on, with `logits_count` rows of logits from `logits_row` on.
  StepEvent TakeOutput(size_t first_row, size_t rows, size_t logits_row,
                       size_t logits_count);
  StepEvent TakeLogProbabilities(size_t rows, size_t logits_row, size_t logits_count);
  StepEvent TakePromptAndDraw(size_t rows, size_t logits_row);
  // Of the id at `position`, by the row of logits before it; those of the likeliest ids
  // go to `top`. kNonFinite where the logits are no numbers.
  StatusOr<double> LogProbabilityAt(size_t position, size_t logits_row,
                                    std::span<TokenLogProbability> top) const;
  void ClearValues();
  // Prepares for what SequenceOptions::prompt_log_probabilities asks for.
  void ScoreFrom(size_t position, std::optional<size_t> likeliest);
  StepEvent PrefillOrDone();
  StepEvent Fail(Status status);
  // For the textbook strategies: replaces the cache by one with room for exactly
  // `tokens`.
  Status Reallocate(size_t tokens);

  Engine* engine_;
  uint32_t id_;
  CacheStrategy strategy_;
  Output output_ = Output::kTokens;
  Overflow overflow_ = Overflow::kStop;
  size_t n_keep_ = 0;
  bool reuse_prefix_ = true;
  bool paused_ = false;
  Status status_;
  std::vector<int32_t>
      ids_;  // Its capacity is that of the whole context from the start.
  size_t computed_ = 0;
  size_t reused_ = 0;
  size_t drawn_ = 0;       // How many of the last ids were drawn since the last Append.
  bool admitted_ = false;  // Since the last Append.
  size_t logits_row_ = kNoLogits;
  size_t logits_count_ = 0;
  std::vector<double> values_;
  // The ids of the prompt whose log-probabilities are still to come, by position.
  size_t unscored_ = 0;
  size_t unscored_end_ = 0;
  std::vector<TokenLogProbability> likeliest_;
  KvCache cache_;  // In the engine's pool; empty for the textbook strategies.
  std::unique_ptr<OwnCache> own_;
  std::optional<Sampler> sampler_;
};

}  // namespace kvasm

#endif  // KVASM_ENGINE_SEQUENCE_H_
