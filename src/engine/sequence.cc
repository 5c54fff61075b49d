#include "engine/sequence.h"

#include <algorithm>
#include <string>
#include <utility>

namespace kvasm {

Sequence::Sequence(Engine* engine, CacheStrategy strategy)
    : engine_(engine),
      id_(++engine->last_sequence_id_),
      strategy_(strategy),
      cache_(&engine->pool_, engine->context_length(), engine->options().window) {
  ids_.reserve(engine->context_length() + 1);
  engine->Register(this);
}

Sequence::~Sequence() {
  LeaveToLaterOnes();
  engine_->Unregister(this);
}

void Sequence::LeaveToLaterOnes() {
  if (engine_->tree_ && reuse_prefix_ && cache_.tokens() > 0) {
    engine_->tree_->Insert(std::span(ids_).first(computed_), cache_,
                           /*with_last=*/true);
  }
}

Status Sequence::Configure(const SequenceOptions& options) {
  KVASM_RETURN_IF_ERROR(Sampler::Validate(options.sampler));
  if (options.overflow == Overflow::kShift &&
      options.n_keep >= std::max<size_t>(engine_->context_length() / 2, 1)) {
    return Status(StatusCode::kInvalidArgument,
                  "nKeep is " + std::to_string(options.n_keep) +
                      ", but must be less than half the context of " +
                      std::to_string(engine_->context_length()) + " tokens");
  }
  if (options.output != Output::kTokens && strategy_ != CacheStrategy::kBlock) {
    return Status(StatusCode::kInvalidArgument,
                  "only tokens can be had of sequences without the block cache");
  }
  const size_t vocab_size = engine_->config().vocab_size;
  sampler_.emplace(options.sampler, options.vocab_limit == 0
                                        ? vocab_size
                                        : std::min(options.vocab_limit, vocab_size));
  output_ = options.output;
  overflow_ = options.overflow;
  n_keep_ = options.n_keep;
  reuse_prefix_ = options.reuse_prefix;
  return OkStatus();
}

size_t Sequence::remaining() const {
  if (overflow_ == Overflow::kShift) return std::numeric_limits<size_t>::max();
  return engine_->context_length() + 1 - ids_.size();
}

const float* Sequence::logits(size_t i) const {
  return i < logits_count_ ? engine_->model_.logits(logits_row_ + i) : nullptr;
}

float Sequence::LogProbabilities(std::span<TokenLogProbability> top) const {
  return kvasm::LogProbabilities(logits(), sampler_->vocab_size(), ids_.back(), top);
}

Status Sequence::Append(std::span<const int32_t> ids, const SequenceOptions& options) {
  KVASM_RETURN_IF_ERROR(engine_->CheckIds(ids));
  const size_t size = ids_.size() + ids.size();
  if (size == 0) {
    return Status(
        StatusCode::kInvalidArgument,
        "the prompt is empty; give at least one token, such as the end-of-text "
        "token");
  }
  if (size > engine_->context_length()) {
    return Status(
        StatusCode::kContextFull,
        "the prompt makes " + std::to_string(size) + " tokens, but the context holds " +
            std::to_string(engine_->context_length()) + "; shorten the prompt");
  }
  if (strategy_ == CacheStrategy::kBlock) {
    KVASM_RETURN_IF_ERROR(engine_->CheckFits(size));
  }
  if ((options.output != Output::kTokens || output_ != Output::kTokens) &&
      !ids_.empty()) {
    return Status(StatusCode::kInvalidArgument,
                  "only sequences that draw tokens go on with more of them");
  }
  KVASM_RETURN_IF_ERROR(Configure(options));
  logits_count_ = 0;
  const size_t size_before = ids_.size();
  ids_.insert(ids_.end(), ids.begin(), ids.end());
  ClearValues();
  sampler_->AddPrompt(ids_);
  drawn_ = 0;
  // A pass over the whole sequence that is under way was to end sooner.
  if (strategy_ == CacheStrategy::kNone) SetBack();
  // With nothing new, the logits of the last id are wanted once more.
  if (computed_ == ids_.size()) RollBack(computed_ - 1);
  if (output_ == Output::kTokens) {
    ScoreFrom(size_before, options.prompt_log_probabilities);
  }
  reused_ = computed_;
  admitted_ = computed_ > 0;
  return OkStatus();
}

Status Sequence::Truncate(size_t size) {
  if (output_ != Output::kTokens) {
    return Status(StatusCode::kInvalidArgument,
                  "only sequences that draw tokens can be rolled back");
  }
  if (size > ids_.size()) {
    return Status(StatusCode::kInvalidArgument,
                  "cannot roll back to " + std::to_string(size) + " of " +
                      std::to_string(ids_.size()) + " tokens");
  }
  logits_count_ = 0;
  unscored_end_ = 0;
  for (; ids_.size() > size; ids_.pop_back()) {
    if (sampler_) sampler_->Remove(ids_.back(), drawn_ > 0);
    if (drawn_ > 0) --drawn_;
  }
  RollBack(std::min(computed_, size));
  return OkStatus();
}

void Sequence::RollBack(size_t computed) {
  if (strategy_ == CacheStrategy::kBlock && cache_.Truncate(computed).ok()) {
    computed_ = computed;
  } else {
    SetBack();
  }
}

StatusOr<std::unique_ptr<Sequence>> Sequence::Fork() const {
  if (strategy_ != CacheStrategy::kBlock || output_ != Output::kTokens) {
    return Status(StatusCode::kInvalidArgument,
                  "only sequences that draw tokens with the block cache can fork");
  }
  std::unique_ptr<Sequence> fork(new Sequence(engine_, strategy_));
  fork->ids_.assign(ids_.begin(), ids_.end());
  fork->computed_ = computed_;
  fork->cache_.ForkFrom(cache_);
  fork->drawn_ = drawn_;
  fork->sampler_ = sampler_;
  fork->overflow_ = overflow_;
  fork->n_keep_ = n_keep_;
  fork->reuse_prefix_ = reuse_prefix_;
  fork->status_ = status_;
  fork->paused_ = true;
  return fork;
}

StatusOr<std::unique_ptr<Sequence>> Sequence::ForkAndRedraw(
    const SequenceOptions& options) const {
  if (output_ != Output::kTokens || options.output != Output::kTokens ||
      logits_count_ == 0) {
    return Status(StatusCode::kInvalidArgument,
                  "the last step has drawn no token for this sequence");
  }
  StatusOr<std::unique_ptr<Sequence>> fork = Fork();
  if (!fork.ok()) return fork;
  Sequence& copy = **fork;
  copy.ids_.pop_back();
  KVASM_RETURN_IF_ERROR(copy.Configure(options));
  copy.sampler_->AddPrompt(copy.ids_);
  copy.drawn_ = 0;
  copy.reused_ = reused_;
  copy.admitted_ = true;
  copy.paused_ = false;
  copy.Draw(logits_row_);
  if (!copy.status_.ok()) return copy.status_;
  return fork;
}

void Sequence::SetBack() {
  cache_.Clear();
  own_.reset();
  computed_ = 0;
  ClearValues();
}

Status Sequence::HandleOverflow() {
  const size_t context = engine_->context_length();
  if (ids_.size() <= context) return OkStatus();
  if (overflow_ == Overflow::kStop) {
    return Status(StatusCode::kContextFull,
                  "the context of " + std::to_string(context) + " tokens is full");
  }
  // Half a context: keeping more would mean computing it anew so much more often (T7).
  const size_t latest = std::max<size_t>(context / 2, 1) - n_keep_;
  ids_.erase(ids_.begin() + static_cast<std::ptrdiff_t>(n_keep_),
             ids_.end() - static_cast<std::ptrdiff_t>(latest));
  drawn_ = std::min(drawn_, latest);
  SetBack();
  return OkStatus();
}

Status Sequence::Admit() {
  PrefixTree* tree = reuse_prefix_ && !NeedsAllRows() ? engine_->tree_.get() : nullptr;
  // Matched first: what is matched is held, and cannot be given up to make room for the
  // rest.
  if (tree) computed_ = tree->Match(ids_, &cache_);
  // Room for all of it, lest it take blocks that those before it are about to need.
  const size_t held = BlocksFor(cache_.held_tokens());
  const size_t most = engine_->BlocksForOneSequence();
  Status status = cache_.EnsureRoom(std::min(
      cache_.BlocksNeeded(ids_.size() - computed_), most - std::min(most, held)));
  if (!status.ok()) {
    SetBack();
    return status;
  }
  if (!admitted_) {
    admitted_ = true;
    reused_ = computed_;
    if (tree) tree->CountLookup(reused_);
  }
  return OkStatus();
}

void Sequence::AfterCompute(size_t count) {
  const size_t full_before = computed_ / kBlockTokens;
  computed_ += count;
  // Before the window slides: its blocks are all there still.
  if (engine_->tree_ && reuse_prefix_ && computed_ / kBlockTokens > full_before) {
    engine_->tree_->Insert(std::span(ids_).first(computed_), cache_,
                           /*with_last=*/false);
  }
  cache_.Slide();
}

StepEvent Sequence::Draw(size_t logits_row) {
  logits_row_ = logits_row;
  logits_count_ = 1;
  const StatusOr<int32_t> token = sampler_->Sample(logits());
  if (!token.ok()) return Fail(token.status());
  ids_.push_back(token.value());
  ++drawn_;
  return {this, StepEvent::Kind::kToken, token.value()};
}

StepEvent Sequence::Fail(Status status) {
  status_ = std::move(status);
  // Nothing it holds must keep others waiting, nor be reused: it may be what the
  // failure is about.
  SetBack();
  return {this, StepEvent::Kind::kFailed, 0};
}

Status Sequence::Reallocate(size_t tokens) {
  StatusOr<BlockPool> pool =
      BlockPool::Create(engine_->pool_.geometry(), BlocksFor(tokens));
  if (!pool.ok()) return pool.status();
  auto grown =
      std::make_unique<OwnCache>(std::move(*pool), tokens, engine_->options().window);
  if (own_) KVASM_RETURN_IF_ERROR(grown->cache.CopyFrom(own_->cache));
  own_ = std::move(grown);
  return OkStatus();
}

}  // namespace kvasm
