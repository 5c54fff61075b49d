#ifndef KVASM_MODEL_GGUF_CONFIG_H_
#define KVASM_MODEL_GGUF_CONFIG_H_

#include <vector>

#include "base/status.h"
#include "formats/gguf_metadata.h"
#include "formats/tensor_sink.h"
#include "model/gpt2_config.h"

namespace kvasm {

// The config that a GGUF file of the architecture "gpt2" brings. The vocabulary's size
// is the number of rows of token_embd.weight. kUnsupported for other architectures and
// variants, kInvalidConfig where a key is missing or malformed, kInvalidModel where the
// tokens are more than the rows.
StatusOr<Gpt2Config> ReadGgufConfig(const GgufMetadata& metadata,
                                    const std::vector<TensorInfo>& tensors);

}  // namespace kvasm

#endif  // KVASM_MODEL_GGUF_CONFIG_H_
