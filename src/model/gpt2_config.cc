#include "model/gpt2_config.h"

#include <string>

#include "formats/rapidjson.h"

namespace kvasm {
namespace {

Status Invalid(const std::string& problem) {
  return Status(StatusCode::kInvalidConfig, "config.json: " + problem);
}

Status Unsupported(const std::string& problem) {
  return Status(StatusCode::kUnsupported, "config.json: " + problem);
}

const rapidjson::Value* Find(const rapidjson::Value& object, const char* key) {
  const auto member = object.FindMember(key);
  if (member == object.MemberEnd() || member->value.IsNull()) return nullptr;
  return &member->value;
}

// A positive size; `fallback` where the key is missing or null, unless that is 0.
Status ReadSize(const rapidjson::Value& object, const char* key, size_t fallback,
                size_t* size) {
  const rapidjson::Value* value = Find(object, key);
  if (value == nullptr) {
    if (fallback == 0) return Invalid(std::string("'") + key + "' is missing");
    *size = fallback;
    return OkStatus();
  }
  if (!value->IsUint() || value->GetUint() == 0 || value->GetUint() > kMaxGpt2Size) {
    return Invalid(std::string("'") + key + "' must be an integer from 1 to " +
                   std::to_string(kMaxGpt2Size));
  }
  *size = value->GetUint();
  return OkStatus();
}

// Options that change the arithmetic, and the value that kvasm computes.
Status CheckFlag(const rapidjson::Value& object, const char* key, bool computed) {
  const rapidjson::Value* value = Find(object, key);
  if (value == nullptr) return OkStatus();
  if (!value->IsBool()) return Invalid(std::string("'") + key + "' must be a boolean");
  if (value->GetBool() == computed) return OkStatus();
  return Unsupported(std::string("'") + key + "' is " + (computed ? "false" : "true") +
                     ", which kvasm does not compute");
}

Status CheckString(const rapidjson::Value& object, const char* key, const char* first,
                   const char* second) {
  const rapidjson::Value* value = Find(object, key);
  if (value == nullptr) return OkStatus();
  if (!value->IsString()) return Invalid(std::string("'") + key + "' must be a string");
  const std::string text = value->GetString();
  if (text == first || text == second) return OkStatus();
  return Unsupported(std::string("'") + key + "' is '" + text + "'; kvasm computes '" +
                     first + "'");
}

}  // namespace

StatusOr<Gpt2Config> ParseGpt2Config(std::string_view json) {
  rapidjson::Document document;
  document.Parse<kJsonFlags>(json.data(), json.size());
  if (document.HasParseError()) {
    return Invalid(std::string(rapidjson::GetParseError_En(document.GetParseError())) +
                   " (at byte " + std::to_string(document.GetErrorOffset()) + ")");
  }
  if (!document.IsObject()) return Invalid("must be a JSON object");
  KVASM_RETURN_IF_ERROR(CheckString(document, "model_type", "gpt2", "gpt2"));
  KVASM_RETURN_IF_ERROR(
      CheckString(document, "activation_function", "gelu_new", "gelu_pytorch_tanh"));
  KVASM_RETURN_IF_ERROR(CheckFlag(document, "scale_attn_weights", true));
  KVASM_RETURN_IF_ERROR(CheckFlag(document, "scale_attn_by_inverse_layer_idx", false));
  KVASM_RETURN_IF_ERROR(CheckFlag(document, "add_cross_attention", false));

  Gpt2Config config;
  KVASM_RETURN_IF_ERROR(ReadSize(document, "n_layer", 0, &config.n_layer));
  KVASM_RETURN_IF_ERROR(ReadSize(document, "n_head", 0, &config.n_head));
  KVASM_RETURN_IF_ERROR(
      ReadSize(document, "n_kv_head", config.n_head, &config.n_kv_head));
  KVASM_RETURN_IF_ERROR(ReadSize(document, "n_embd", 0, &config.n_embd));
  KVASM_RETURN_IF_ERROR(
      ReadSize(document, "n_inner", 4 * config.n_embd, &config.n_inner));
  KVASM_RETURN_IF_ERROR(ReadSize(document, "n_positions", 0, &config.n_positions));
  KVASM_RETURN_IF_ERROR(ReadSize(document, "vocab_size", 0, &config.vocab_size));
  if (config.n_embd % config.n_head != 0) {
    return Invalid("'n_embd' must be a multiple of 'n_head'");
  }
  if (config.n_head % config.n_kv_head != 0) {
    return Invalid("'n_head' must be a multiple of 'n_kv_head'");
  }
  if (const rapidjson::Value* epsilon = Find(document, "layer_norm_epsilon")) {
    if (!epsilon->IsNumber() || !(epsilon->GetDouble() > 0) ||
        epsilon->GetDouble() > 1) {
      return Invalid("'layer_norm_epsilon' must be a number above 0, at most 1");
    }
    config.layer_norm_epsilon = static_cast<float>(epsilon->GetDouble());
  }
  if (const rapidjson::Value* eos = Find(document, "eos_token_id")) {
    // Checkpoints with a cut vocabulary keep the id of the full one: it can never be
    // drawn.
    if (!eos->IsUint()) return Invalid("'eos_token_id' must be a token id");
    if (eos->GetUint() < config.vocab_size) {
      config.eos_token_id = static_cast<int>(eos->GetUint());
    }
  }
  return config;
}

}  // namespace kvasm
