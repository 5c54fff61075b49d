// Files of either format, through the loader and into weights and an engine.

#include <memory>
#include <utility>

#include "engine/engine.h"
#include "fuzz/allocation_limit.h"
#include "fuzz/weights_fuzz.h"
#include "model/gpt2_loader.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  kvasm::Gpt2Loader loader;
  // As of the seeds. A GGUF file's own replaces it.
  kvasm::Require(loader
                     .SetConfig(R"({"n_layer":1,"n_head":2,"n_embd":4,"n_inner":3,)"
                                R"("n_positions":5,"vocab_size":7})")
                     .ok());
  const std::vector<uint8_t> file(data + 1, data + size);
  const kvasm::Status status = kvasm::Feed(file, size_t{1} << (data[0] % 16), &loader);
  kvasm::Require(status.ok() || !status.message().empty());
  if (!status.ok()) {
    kvasm::Require(loader.Finish().message() == status.message());
    return 0;
  }
  kvasm::Require(loader.config() != nullptr);
  kvasm::EngineOptions options;
  options.prefill_chunk = 1;
  (void)kvasm::Engine::Create(std::move(loader.weights()), options);
  return 0;
}
