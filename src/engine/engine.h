// A loaded model, the memory that generations work in, and the scheduler that computes
// them together.

#ifndef KVASM_ENGINE_ENGINE_H_
#define KVASM_ENGINE_ENGINE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/status.h"
#include "base/thread_pool.h"
#include "cache/block_pool.h"
#include "cache/prefix_tree.h"
#include "model/gpt2.h"
#include "model/gpt2_weights.h"

namespace kvasm {

class Sequence;
struct SequenceOptions;

struct EngineOptions {
  // Positions that a sequence may use; 0: n_positions, which is also the maximum.
  size_t context_length = 0;
  // Keys that a query sees, its own included; 0: all.
  size_t window = 0;
  KvDtype kv_dtype = KvDtype::kF32;
  // Memory for keys and values, in bytes; 0: what one sequence of full length needs.
  size_t kv_bytes = 0;
  // Whether prompts reuse the keys and values of earlier ones.
  bool prefix_cache = true;
  // Rows that one forward pass takes at the most: long prompts are computed in chunks
  // of this.
  size_t prefill_chunk = 64;
  // Sequences that draw a token in one forward pass, at the most; the others wait for
  // the next.
  size_t max_batch = 8;
  // Threads to compute with, which may serve several engines, one at a time; must
  // outlive them. Null: the caller's thread alone.
  ThreadPool* thread_pool = nullptr;
};

struct MemoryUse {
  size_t weights_bytes;
  size_t activation_bytes;
  size_t
      kv_reserved_bytes;   // The pool, and what the textbook strategies hold beside it.
  size_t kv_used_bytes;    // kv_tokens * kv_bytes_per_token.
  size_t kv_shared_bytes;  // Held once more, by reference: what sharing saves.
  size_t kv_cached_bytes;  // Blocks that only the prefix tree holds.
  size_t kv_bytes_per_token;
  size_t kv_tokens;  // Tokens held by sequences, each as often as a sequence holds it.
};

// What a step did for one sequence.
struct StepEvent {
  enum class Kind {
    kPrefill,  // Some of its tokens were computed, and more are to come.
    kToken,    // It drew `token`.
    kFailed,   // It is spent; its status() says why.
    kDone,     // All of its tokens were computed, and it is to draw none.
  };
  Sequence* sequence;
  Kind kind;
  int32_t token;
};

class Engine {
 public:
  static StatusOr<std::unique_ptr<Engine>> Create(Gpt2Weights weights,
                                                  const EngineOptions& options);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  const Gpt2Config& config() const { return weights_.config; }
  const Gpt2Weights& weights() const { return weights_; }
  const EngineOptions& options() const { return options_; }
  size_t context_length() const { return options_.context_length; }

  // Starts a generation; the sequence must go before the engine. kInvalidArgument for
  // an empty prompt or ids outside the vocabulary, kContextFull for a prompt longer
  // than the context, kOutOfMemory for one that the pool could not hold even alone.
  StatusOr<std::unique_ptr<Sequence>> StartSequence(std::span<const int32_t> prompt,
                                                    const SequenceOptions& options);

  // Computes one batch: the next token of every sequence that is decoding, and a chunk
  // of a prompt. Returns what it did, valid until the next call; nothing when no
  // sequence has anything to compute. Bits do not depend on what else is in the batch.
  // When the pool runs out, the prefix tree gives up blocks; then the youngest sequence
  // is set back, to be computed anew once there is room; one that does not fit even
  // alone fails with kOutOfMemory. Allocates nothing.
  std::span<const StepEvent> Step();

  MemoryUse Memory() const;
  const PrefixTreeStats* prefix_stats() const {
    return tree_ ? &tree_->stats() : nullptr;
  }
  std::span<Sequence* const> sequences() const { return sequences_; }
  const BlockPool& pool() const { return pool_; }
  const PrefixTree* prefix_tree() const { return tree_.get(); }

  // A number that tells this model from another: from its shape and weights.
  uint64_t Fingerprint() const;

 private:
  friend class Sequence;

  Engine(Gpt2Weights weights, const EngineOptions& options);

  Status CheckIds(std::span<const int32_t> ids) const;
  // Blocks that one sequence of full length needs at once.
  size_t BlocksForOneSequence() const;
  // Whether `tokens` would fit into an empty pool.
  Status CheckFits(size_t tokens) const;
  void Register(Sequence* sequence);
  void Unregister(Sequence* sequence);

  // How many of a sequence's next rows the batch has room for, up to `max_rows`.
  size_t RowsThatFit(const Sequence& sequence, size_t max_rows) const;
  void PushRows(const Sequence& sequence, size_t count, KvCache* cache);
  // Adds rows for a sequence to the batch, up to `max_rows`; kOutOfMemory when the pool
  // has no room.
  Status AddRows(Sequence* sequence, size_t max_rows);
  void BuildBatch();
  // Makes room by setting the youngest other sequence back; false when there is none.
  bool SetBackYoungestBut(const Sequence* sequence);
  void RunBatch();
  void StepBatch();
  // Textbook sequences have the forward pass to themselves, one a step.
  Sequence* NextTextbookSequence();
  void StepAlone(Sequence* sequence);

  Gpt2Weights weights_;
  EngineOptions options_;
  Gpt2 model_;
  BlockPool pool_;
  std::unique_ptr<PrefixTree> tree_;
  std::vector<Sequence*> sequences_;  // By age, the oldest first.
  uint32_t last_sequence_id_ = 0;
  size_t next_turn_ = 0;     // Who decodes first when not all fit into a batch.
  bool alone_next_ = false;  // Whose turn it is: a textbook sequence's, or the batch's.

  // A sequence's share of the batch under way.
  struct Share {
    Sequence* sequence;
    size_t first_row;
    size_t rows;
    size_t first_logits_row;
    size_t logits_rows;
  };
  std::vector<Share> shares_;
  std::vector<BatchRow> rows_;
  std::vector<size_t> logit_rows_;
  std::vector<StepEvent> events_;
  // Sequences that the pool had no room for, and what it said.
  struct Stall {
    Sequence* sequence;
    Status status;
  };
  std::vector<Stall> stalled_;
};

}  // namespace kvasm

#endif  // KVASM_ENGINE_ENGINE_H_
