#include "engine/sequence.h"

#include <algorithm>
#include <string>
#include <utility>

namespace kvasm {
namespace {

size_t VocabLimit(const Gpt2Config& config, size_t limit) {
  return limit == 0 ? config.vocab_size : std::min(limit, config.vocab_size);
}

}  // namespace

Sequence::Sequence(Engine* engine, std::span<const int32_t> prompt,
                   const SequenceOptions& options)
    : engine_(engine),
      strategy_(options.cache),
      prompt_size_(prompt.size()),
      cache_(&engine->pool(), engine->context_length()),
      sampler_(options.sampler, VocabLimit(engine->config(), options.vocab_limit)) {
  ids_.reserve(engine->context_length() + 1);
  ids_.assign(prompt.begin(), prompt.end());
  rows_.reserve(engine->model().max_rows());
}

size_t Sequence::remaining() const {
  return engine_->context_length() + 1 - ids_.size();
}

size_t Sequence::prefilled() const { return std::min(computed_, prompt_size_); }

size_t Sequence::cached_tokens() const {
  switch (strategy_) {
    case CacheStrategy::kBlock:
      return cache_.tokens();
    case CacheStrategy::kConcat:
      return own_ ? own_->cache.tokens() : 0;
    case CacheStrategy::kNone:
      return 0;
  }
  return 0;
}

size_t Sequence::own_cache_bytes() const {
  return own_ ? own_->pool.reserved_bytes() : 0;
}

StatusOr<Sequence::StepResult> Sequence::Step() {
  if (remaining() == 0) {
    return Status(StatusCode::kContextFull,
                  "the context of " + std::to_string(engine_->context_length()) +
                      " tokens is full");
  }
  if (!failure_.ok()) return failure_;
  StatusOr<StepResult> result = StepUnchecked();
  if (!result.ok()) failure_ = result.status();
  return result;
}

StatusOr<Sequence::StepResult> Sequence::StepUnchecked() {
  // Without a cache there is nothing to go on from, once the prompt is through.
  if (strategy_ == CacheStrategy::kNone && computed_ >= prompt_size_) computed_ = 0;
  const size_t chunk = engine_->model().max_rows();
  do {
    const size_t count = std::min(ids_.size() - computed_, chunk);
    KVASM_RETURN_IF_ERROR(Compute(count, computed_ + count == ids_.size()));
    if (ids_.size() == prompt_size_ && computed_ < prompt_size_) {
      return StepResult{StepKind::kPrefill, 0};
    }
  } while (computed_ < ids_.size());
  if (strategy_ == CacheStrategy::kNone) cache_.Clear();

  const StatusOr<int32_t> token = sampler_.Sample(logits());
  if (!token.ok()) return token.status();
  ids_.push_back(token.value());
  return StepResult{StepKind::kToken, token.value()};
}

Status Sequence::Reallocate(size_t tokens) {
  const size_t blocks = (tokens + kBlockTokens - 1) / kBlockTokens;
  StatusOr<BlockPool> pool = BlockPool::Create(engine_->pool().geometry(), blocks);
  if (!pool.ok()) return pool.status();
  auto grown = std::make_unique<OwnCache>(std::move(*pool), tokens);
  if (own_) KVASM_RETURN_IF_ERROR(grown->cache.CopyFrom(own_->cache));
  own_ = std::move(grown);
  return OkStatus();
}

Status Sequence::Compute(size_t count, bool want_logits) {
  KvCache* cache = &cache_;
  if (strategy_ == CacheStrategy::kConcat) {
    KVASM_RETURN_IF_ERROR(Reallocate(computed_ + count));
    cache = &own_->cache;
  }
  KVASM_RETURN_IF_ERROR(cache->Extend(count));
  rows_.clear();
  for (size_t i = 0; i < count; ++i) {
    rows_.push_back({ids_[computed_ + i], computed_ + i, cache});
  }
  const size_t last = count - 1;
  engine_->model().Forward(rows_, {&last, want_logits ? 1u : 0u});
  computed_ += count;
  return OkStatus();
}

}  // namespace kvasm
