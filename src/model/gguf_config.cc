#include "model/gguf_config.h"

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>

namespace kvasm {
namespace {

Status Invalid(const std::string& problem) {
  return Status(StatusCode::kInvalidConfig, "GGUF metadata: " + problem);
}

Status Unsupported(const std::string& problem) {
  return Status(StatusCode::kUnsupported, "GGUF metadata: " + problem);
}

// An integer of any type that is not negative.
std::optional<uint64_t> FindUint(const GgufMetadata& metadata, std::string_view key) {
  if (const auto* value = FindGguf<uint64_t>(metadata, key)) return *value;
  const auto* value = FindGguf<int64_t>(metadata, key);
  if (value == nullptr || *value < 0) return std::nullopt;
  return static_cast<uint64_t>(*value);
}

// A positive size; `fallback` where the key is missing, unless that is 0.
Status ReadSize(const GgufMetadata& metadata, const std::string& key, size_t fallback,
                size_t* size) {
  if (metadata.count(key) == 0) {
    if (fallback == 0) return Invalid("'" + key + "' is missing");
    *size = fallback;
    return OkStatus();
  }
  const std::optional<uint64_t> value = FindUint(metadata, key);
  if (!value || *value == 0 || *value > kMaxGpt2Size) {
    return Invalid("'" + key + "' must be an integer from 1 to " +
                   std::to_string(kMaxGpt2Size));
  }
  *size = static_cast<size_t>(*value);
  return OkStatus();
}

Status CheckVariant(const GgufMetadata& metadata) {
  const auto* architecture = FindGguf<std::string>(metadata, "general.architecture");
  if (architecture == nullptr) {
    return Invalid("'general.architecture' must be a text");
  }
  if (*architecture != "gpt2") {
    return Unsupported("the model's architecture is '" + architecture->substr(0, 60) +
                       "'; kvasm runs 'gpt2'");
  }
  if (FindUint(metadata, "split.count").value_or(1) > 1) {
    return Unsupported(
        "the file is one part of a split model; join its parts into one file first");
  }
  return OkStatus();
}

Status ReadVocabulary(const GgufMetadata& metadata,
                      const std::vector<TensorInfo>& tensors, Gpt2Config* config) {
  const auto embedding = std::find_if(
      tensors.begin(), tensors.end(),
      [](const TensorInfo& tensor) { return tensor.name == "token_embd.weight"; });
  if (embedding == tensors.end() || embedding->shape.size() != 2 ||
      embedding->shape[0] == 0 || embedding->shape[0] > kMaxGpt2Size) {
    return Status(StatusCode::kInvalidModel,
                  "the weights lack a 'token_embd.weight' of 1 to " +
                      std::to_string(kMaxGpt2Size) + " rows");
  }
  config->vocab_size = static_cast<size_t>(embedding->shape[0]);
  const auto* tokens = FindGguf<GgufStrings>(metadata, "tokenizer.ggml.tokens");
  if (tokens != nullptr && tokens->size() > config->vocab_size) {
    return Status(StatusCode::kInvalidModel,
                  "GGUF metadata: there are " + std::to_string(tokens->size()) +
                      " tokens, but 'token_embd.weight' has only " +
                      std::to_string(config->vocab_size) + " rows");
  }
  // As in a config.json, the id may be that of a full vocabulary, which this one is
  // not.
  const uint64_t eos =
      FindUint(metadata, "tokenizer.ggml.eos_token_id").value_or(config->vocab_size);
  if (eos < config->vocab_size) config->eos_token_id = static_cast<int>(eos);
  return OkStatus();
}

}  // namespace

StatusOr<Gpt2Config> ReadGgufConfig(const GgufMetadata& metadata,
                                    const std::vector<TensorInfo>& tensors) {
  KVASM_RETURN_IF_ERROR(CheckVariant(metadata));
  Gpt2Config config;
  const auto read = [&](const char* key, size_t fallback, size_t* size) {
    return ReadSize(metadata, std::string("gpt2.") + key, fallback, size);
  };
  KVASM_RETURN_IF_ERROR(read("block_count", 0, &config.n_layer));
  KVASM_RETURN_IF_ERROR(read("attention.head_count", 0, &config.n_head));
  KVASM_RETURN_IF_ERROR(
      read("attention.head_count_kv", config.n_head, &config.n_kv_head));
  KVASM_RETURN_IF_ERROR(read("embedding_length", 0, &config.n_embd));
  KVASM_RETURN_IF_ERROR(
      read("feed_forward_length", 4 * config.n_embd, &config.n_inner));
  KVASM_RETURN_IF_ERROR(read("context_length", 0, &config.n_positions));
  if (config.n_embd % config.n_head != 0) {
    return Invalid(
        "'gpt2.embedding_length' must be a multiple of 'gpt2.attention.head_count'");
  }
  if (config.n_head % config.n_kv_head != 0) {
    return Invalid("'gpt2.attention.head_count' must be a multiple of its '_kv'");
  }
  const std::string epsilon_key = "gpt2.attention.layer_norm_epsilon";
  if (metadata.count(epsilon_key) > 0) {
    const double* epsilon = FindGguf<double>(metadata, epsilon_key);
    if (epsilon == nullptr || !(*epsilon > 0) || *epsilon > 1) {
      return Invalid("'" + epsilon_key + "' must be a number above 0, at most 1");
    }
    config.layer_norm_epsilon = static_cast<float>(*epsilon);
  }
  KVASM_RETURN_IF_ERROR(ReadVocabulary(metadata, tensors, &config));
  return config;
}

}  // namespace kvasm
