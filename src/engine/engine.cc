#include "engine/engine.h"

#include <algorithm>
#include <string>
#include <utility>

#include "engine/sequence.h"

namespace kvasm {

StatusOr<std::unique_ptr<Engine>> Engine::Create(Gpt2Weights weights,
                                                 const EngineOptions& options) {
  const size_t n_positions = weights.config.n_positions;
  if (options.context_length > n_positions) {
    return Status(StatusCode::kInvalidArgument,
                  "contextLength is " + std::to_string(options.context_length) +
                      ", but the model has " + std::to_string(n_positions) +
                      " positions");
  }
  const size_t context =
      options.context_length == 0 ? n_positions : options.context_length;
  std::unique_ptr<Engine> engine(new Engine(std::move(weights), context));

  const size_t rows = std::clamp<size_t>(options.prefill_chunk, 1, context);
  StatusOr<Gpt2> model = Gpt2::Create(&engine->weights_, rows, /*max_logit_rows=*/1);
  if (!model.ok()) return model.status();
  engine->model_ = std::move(*model);

  const size_t blocks = (context + kBlockTokens - 1) / kBlockTokens;
  StatusOr<BlockPool> pool =
      BlockPool::Create(Gpt2::GeometryOf(engine->config()), blocks);
  if (!pool.ok()) return pool.status();
  engine->pool_ = std::move(*pool);
  return engine;
}

StatusOr<std::unique_ptr<Sequence>> Engine::StartSequence(
    std::span<const int32_t> prompt, const SequenceOptions& options) {
  if (prompt.empty()) {
    return Status(
        StatusCode::kInvalidArgument,
        "the prompt is empty; give at least one token, such as the end-of-text "
        "token");
  }
  for (const int32_t id : prompt) {
    if (id < 0 || static_cast<size_t>(id) >= config().vocab_size) {
      return Status(StatusCode::kInvalidArgument,
                    "the prompt holds the token id " + std::to_string(id) +
                        ", but the vocabulary ends at " +
                        std::to_string(config().vocab_size - 1));
    }
  }
  if (prompt.size() > context_length_) {
    return Status(StatusCode::kContextFull,
                  "the prompt has " + std::to_string(prompt.size()) +
                      " tokens, but the context holds " +
                      std::to_string(context_length_) + "; shorten the prompt");
  }
  KVASM_RETURN_IF_ERROR(Sampler::Validate(options.sampler));
  return std::unique_ptr<Sequence>(new Sequence(this, prompt, options));
}

MemoryUse Engine::Memory(const Sequence* active) const {
  const size_t per_token = pool_.geometry().BytesPerToken();
  const size_t tokens = active ? active->cached_tokens() : 0;
  return {.weights_bytes = weights_.bytes(),
          .activation_bytes = model_.activation_bytes(),
          .kv_reserved_bytes =
              pool_.reserved_bytes() + (active ? active->own_cache_bytes() : 0),
          .kv_used_bytes = tokens * per_token,
          .kv_bytes_per_token = per_token,
          .kv_tokens = tokens};
}

}  // namespace kvasm
