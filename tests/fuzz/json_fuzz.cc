// The JSON files: config.json and model.safetensors.index.json.

#include <string_view>

#include "formats/safetensors_index.h"
#include "fuzz/weights_fuzz.h"
#include "model/gpt2_config.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const kvasm::StatusOr<kvasm::Gpt2Config> config = kvasm::ParseGpt2Config(text);
  if (config.ok()) {
    const kvasm::Gpt2Config& c = config.value();
    for (const size_t n : {c.n_layer, c.n_head, c.n_kv_head, c.n_embd, c.n_inner,
                           c.n_positions, c.vocab_size}) {
      kvasm::Require(n >= 1 && n <= kvasm::kMaxGpt2Size);
    }
    kvasm::Require(c.n_embd % c.n_head == 0 && c.n_head % c.n_kv_head == 0);
    kvasm::Require(c.layer_norm_epsilon >= 0 && c.layer_norm_epsilon <= 1);
    kvasm::Require(c.eos_token_id >= -1 &&
                   c.eos_token_id < static_cast<int>(c.vocab_size));
  } else {
    kvasm::Require(!config.status().message().empty());
  }
  const kvasm::StatusOr<kvasm::SafetensorsIndex> index =
      kvasm::ParseSafetensorsIndex(text);
  if (index.ok()) {
    kvasm::Require(!index.value().shards.empty());
    for (const std::string& shard : index.value().shards) {
      kvasm::Require(!shard.empty() && shard.find('/') == std::string::npos);
    }
  }
  return 0;
}
