#include "engine/engine.h"

#include <algorithm>
#include <string>
#include <utility>

#include "engine/sequence.h"

namespace kvasm {
namespace {

// With a window: the blocks that the first and the last query of a chunk see, and one
// more since the window need not begin with a block.
size_t BlocksForOne(const EngineOptions& options) {
  const size_t all = BlocksFor(options.context_length);
  if (options.window == 0) return all;
  return std::min(all, BlocksFor(options.window - 1 + options.prefill_chunk) + 1);
}

}  // namespace

Engine::Engine(Gpt2Weights weights, const EngineOptions& options)
    : weights_(std::move(weights)), options_(options) {}

Engine::~Engine() = default;

StatusOr<std::unique_ptr<Engine>> Engine::Create(Gpt2Weights weights,
                                                 const EngineOptions& requested) {
  const size_t n_positions = weights.config.n_positions;
  EngineOptions options = requested;
  if (options.context_length > n_positions) {
    return Status(StatusCode::kInvalidArgument,
                  "contextLength is " + std::to_string(options.context_length) +
                      ", but the model has " + std::to_string(n_positions) +
                      " positions");
  }
  if (options.context_length == 0) options.context_length = n_positions;
  // A window that no query reaches the end of is none.
  if (options.window >= options.context_length) options.window = 0;
  options.prefill_chunk =
      std::clamp<size_t>(options.prefill_chunk, 1, options.context_length);
  options.max_batch = std::max<size_t>(options.max_batch, 1);

  const KvGeometry geometry = Gpt2::GeometryOf(weights.config, options.kv_dtype);
  const size_t blocks = options.kv_bytes == 0
                            ? BlocksForOne(options)
                            : options.kv_bytes / geometry.BlockBytes();
  if (blocks == 0) {
    return Status(StatusCode::kInvalidArgument,
                  "kvBytes is " + std::to_string(options.kv_bytes) +
                      ", but one block of 16 tokens takes " +
                      std::to_string(geometry.BlockBytes()) + " bytes");
  }
  std::unique_ptr<Engine> engine(new Engine(std::move(weights), options));
  const size_t max_rows = std::max(options.prefill_chunk, options.max_batch);
  StatusOr<Gpt2> model =
      Gpt2::Create(&engine->weights_, max_rows, options.max_batch, options.thread_pool);
  if (!model.ok()) return model.status();
  engine->model_ = std::move(*model);
  StatusOr<BlockPool> pool = BlockPool::Create(geometry, blocks);
  if (!pool.ok()) return pool.status();
  engine->pool_ = std::move(*pool);
  if (options.prefix_cache) {
    engine->tree_ = std::make_unique<PrefixTree>(&engine->pool_);
  }
  engine->rows_.reserve(max_rows);
  engine->logit_rows_.reserve(options.max_batch);
  return engine;
}

Status Engine::CheckIds(std::span<const int32_t> ids) const {
  for (const int32_t id : ids) {
    if (id < 0 || static_cast<size_t>(id) >= config().vocab_size) {
      return Status(StatusCode::kInvalidArgument,
                    "the prompt holds the token id " + std::to_string(id) +
                        ", but the vocabulary ends at " +
                        std::to_string(config().vocab_size - 1));
    }
  }
  return OkStatus();
}

size_t Engine::BlocksForOneSequence() const { return BlocksForOne(options_); }

Status Engine::CheckFits(size_t tokens) const {
  const size_t needed = std::min(BlocksFor(tokens), BlocksForOneSequence());
  if (needed <= pool_.blocks()) return OkStatus();
  return Status(StatusCode::kOutOfMemory,
                std::to_string(tokens) + " tokens need " + std::to_string(needed) +
                    " blocks of the key/value cache, which has " +
                    std::to_string(pool_.blocks()) +
                    "; shorten the prompt, or load the engine with more kvBytes");
}

StatusOr<std::unique_ptr<Sequence>> Engine::StartSequence(
    std::span<const int32_t> prompt, const SequenceOptions& options) {
  std::unique_ptr<Sequence> sequence(new Sequence(this, options.cache));
  KVASM_RETURN_IF_ERROR(sequence->Append(prompt, options));
  return sequence;
}

void Engine::Register(Sequence* sequence) {
  sequences_.push_back(sequence);
  // Room for every sequence at once, so that a step allocates nothing.
  shares_.reserve(sequences_.capacity());
  events_.reserve(sequences_.capacity());
  stalled_.reserve(sequences_.capacity());
}

void Engine::Unregister(Sequence* sequence) {
  std::erase(sequences_, sequence);
  std::erase_if(events_,
                [&](const StepEvent& event) { return event.sequence == sequence; });
}

size_t Engine::RowsThatFit(const Sequence& sequence, size_t max_rows) const {
  const size_t most = std::min(sequence.ids_.size() - sequence.computed_, max_rows);
  size_t logits_room = options_.max_batch - logit_rows_.size();
  for (size_t count = 0; count < most; ++count) {
    if (!sequence.NeedsLogits(sequence.computed_ + count)) continue;
    if (logits_room-- == 0) return count;
  }
  return most;
}

void Engine::PushRows(const Sequence& sequence, size_t count, KvCache* cache) {
  for (size_t i = 0; i < count; ++i) {
    const size_t position = sequence.computed_ + i;
    if (sequence.NeedsLogits(position)) logit_rows_.push_back(rows_.size());
    rows_.push_back({sequence.ids_[position], position, cache});
  }
}

Status Engine::AddRows(Sequence* sequence, size_t max_rows) {
  KvCache& cache = sequence->cache_;
  if (cache.tokens() == 0) KVASM_RETURN_IF_ERROR(sequence->Admit());
  const size_t count = RowsThatFit(*sequence, max_rows);
  KVASM_RETURN_IF_ERROR(cache.Extend(count));
  const Share share = {sequence, rows_.size(), count, logit_rows_.size(), 0};
  PushRows(*sequence, count, &cache);
  shares_.push_back(share);
  shares_.back().logits_rows = logit_rows_.size() - share.first_logits_row;
  return OkStatus();
}

void Engine::BuildBatch() {
  rows_.clear();
  logit_rows_.clear();
  shares_.clear();
  stalled_.clear();
  const auto full = [&] {
    return rows_.size() == model_.max_rows() ||
           logit_rows_.size() == options_.max_batch;
  };
  const auto is_batched = [](const Sequence* sequence) {
    return sequence->strategy_ == CacheStrategy::kBlock && sequence->has_work();
  };
  // Those that are decoding first, beginning with whom the last batch left out.
  const size_t n = sequences_.size();
  for (size_t i = 0; i < n && !full(); ++i) {
    Sequence* sequence = sequences_[(next_turn_ + i) % n];
    if (!is_batched(sequence) || !sequence->is_decoding()) continue;
    Status status = AddRows(sequence, 1);
    if (!status.ok()) stalled_.push_back({sequence, std::move(status)});
  }
  if (n > 0) next_turn_ = (next_turn_ + logit_rows_.size()) % n;
  // Then prompts, the oldest first, in what is left of a chunk.
  for (Sequence* sequence : sequences_) {
    if (full() || rows_.size() >= options_.prefill_chunk) break;
    if (!is_batched(sequence) || sequence->is_decoding()) continue;
    Status status = AddRows(sequence, options_.prefill_chunk - rows_.size());
    if (!status.ok()) {
      stalled_.push_back({sequence, std::move(status)});
      // Those behind it must not overtake it for ever.
      break;
    }
  }
}

bool Engine::SetBackYoungestBut(const Sequence* sequence) {
  for (auto it = sequences_.rbegin(); it != sequences_.rend(); ++it) {
    if (*it != sequence && (*it)->cache_.tokens() > 0) {
      (*it)->SetBack();
      return true;
    }
  }
  return false;
}

void Engine::RunBatch() {
  if (rows_.empty()) return;
  model_.Forward(rows_, logit_rows_);
  for (const Share& share : shares_) {
    share.sequence->AfterCompute(share.rows);
    events_.push_back(share.sequence->TakeOutput(
        share.first_row, share.rows, share.first_logits_row, share.logits_rows));
  }
}

void Engine::StepAlone(Sequence* sequence) {
  const size_t size = sequence->ids_.size();
  const bool keeps = sequence->strategy_ == CacheStrategy::kConcat;
  // Without a cache there is nothing to go on from.
  if (!keeps && sequence->own_ == nullptr) sequence->computed_ = 0;
  rows_.clear();
  logit_rows_.clear();
  const size_t count = RowsThatFit(*sequence, model_.max_rows());
  const Status reallocated =
      keeps || sequence->own_ == nullptr
          ? sequence->Reallocate(keeps ? sequence->computed_ + count : size)
          : OkStatus();
  const Status extended =
      reallocated.ok() ? sequence->own_->cache.Extend(count) : reallocated;
  if (!extended.ok()) {
    events_.push_back(sequence->Fail(extended));
    return;
  }
  PushRows(*sequence, count, &sequence->own_->cache);
  sequence->computed_ += count;
  model_.Forward(rows_, logit_rows_);
  if (sequence->computed_ == size && !keeps) sequence->own_.reset();
  events_.push_back(sequence->TakeOutput(0, count, 0, logit_rows_.size()));
}

Sequence* Engine::NextTextbookSequence() {
  for (size_t i = 0; i < sequences_.size(); ++i) {
    Sequence* sequence = sequences_[(next_turn_ + i) % sequences_.size()];
    if (sequence->strategy_ == CacheStrategy::kBlock || !sequence->has_work()) continue;
    next_turn_ = (next_turn_ + i + 1) % sequences_.size();
    return sequence;
  }
  return nullptr;
}

void Engine::StepBatch() {
  BuildBatch();
  while (rows_.empty() && !stalled_.empty()) {
    // Nobody can go on. The oldest of them goes on alone, if need be.
    const auto age = [this](const Stall& stall) {
      return std::find(sequences_.begin(), sequences_.end(), stall.sequence);
    };
    Stall& oldest = *std::min_element(
        stalled_.begin(), stalled_.end(),
        [&](const Stall& a, const Stall& b) { return age(a) < age(b); });
    if (!SetBackYoungestBut(oldest.sequence)) {
      events_.push_back(oldest.sequence->Fail(std::move(oldest.status)));
    }
    BuildBatch();
  }
  RunBatch();
}

std::span<const StepEvent> Engine::Step() {
  events_.clear();
  bool has_batch = false;
  for (Sequence* sequence : sequences_) {
    sequence->logits_row_ = Sequence::kNoLogits;
    sequence->logits_count_ = 0;
    if (!sequence->has_work()) continue;
    Status status = sequence->HandleOverflow();
    if (!status.ok()) events_.push_back(sequence->Fail(std::move(status)));
    has_batch |= sequence->strategy_ == CacheStrategy::kBlock && sequence->has_work();
  }
  Sequence* alone = has_batch && !alone_next_ ? nullptr : NextTextbookSequence();
  if (alone) {
    StepAlone(alone);
  } else {
    StepBatch();
  }
  alone_next_ = alone == nullptr;
  return events_;
}

MemoryUse Engine::Memory() const {
  MemoryUse use = {};
  use.weights_bytes = weights_.bytes();
  use.activation_bytes = model_.activation_bytes();
  use.kv_reserved_bytes = pool_.reserved_bytes();
  use.kv_bytes_per_token = pool_.geometry().BytesPerToken();
  const size_t block_bytes = pool_.geometry().BlockBytes();
  for (const Sequence* sequence : sequences_) {
    use.kv_reserved_bytes += sequence->own_cache_bytes();
    if (sequence->strategy() != CacheStrategy::kNone) {
      use.kv_tokens += sequence->cache().held_tokens();
    }
  }
  use.kv_used_bytes = use.kv_tokens * use.kv_bytes_per_token;
  for (size_t b = 0; b < pool_.blocks(); ++b) {
    const BlockId block = static_cast<BlockId>(b);
    const size_t refs = pool_.refs(block);
    const size_t in_tree = tree_ && tree_->Holds(block) ? 1 : 0;
    if (refs > in_tree + 1) use.kv_shared_bytes += (refs - in_tree - 1) * block_bytes;
    if (refs == 1 && in_tree == 1) use.kv_cached_bytes += block_bytes;
  }
  return use;
}

uint64_t Engine::Fingerprint() const { return weights_.Fingerprint(); }

}  // namespace kvasm
