// The engines whose saved sessions are fuzzed.

#ifndef KVASM_TESTS_FUZZ_SESSION_MODEL_H_
#define KVASM_TESTS_FUZZ_SESSION_MODEL_H_

#include <memory>
#include <utility>

#include "engine/engine.h"
#include "model/gpt2_config.h"
#include "model/gpt2_weights.h"

namespace kvasm {

// All weights are zero, but for the gains; its logits are all alike.
inline std::unique_ptr<Engine> MakeSessionEngine(size_t window) {
  const Gpt2Config config = {.n_layer = 1,
                             .n_head = 1,
                             .n_kv_head = 1,
                             .n_embd = 4,
                             .n_inner = 4,
                             .n_positions = 70,
                             .vocab_size = 10};
  StatusOr<Gpt2Weights> weights = Gpt2Weights::Create(config, WeightDtype::kF32, false);
  EngineOptions options;
  options.window = window;
  options.prefill_chunk = 8;
  StatusOr<std::unique_ptr<Engine>> engine =
      Engine::Create(std::move(*weights), options);
  return std::move(*engine);
}

inline constexpr size_t kSessionWindows[] = {0, 20};

}  // namespace kvasm

#endif  // KVASM_TESTS_FUZZ_SESSION_MODEL_H_
