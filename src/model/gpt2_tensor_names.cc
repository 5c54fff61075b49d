#include "model/gpt2_tensor_names.h"

#include <array>

namespace kvasm {
namespace {

struct NamePair {
  std::string_view hugging_face;
  std::string_view gguf;
};

// Each in front of ".weight" or ".bias".
constexpr std::array<NamePair, 4> kGlobal = {{{"wte", "token_embd"},
                                              {"wpe", "position_embd"},
                                              {"ln_f", "output_norm"},
                                              {"lm_head", "output"}}};
// Behind "h.N." or "blk.N.".
constexpr std::array<NamePair, 6> kLayer = {{{"ln_1", "attn_norm"},
                                             {"attn.c_attn", "attn_qkv"},
                                             {"attn.c_proj", "attn_output"},
                                             {"ln_2", "ffn_norm"},
                                             {"mlp.c_fc", "ffn_up"},
                                             {"mlp.c_proj", "ffn_down"}}};

constexpr std::string_view kPrefix = "transformer.";
constexpr std::string_view kHuggingFaceLayer = "h.";
constexpr std::string_view kGgufLayer = "blk.";
constexpr std::string_view kForeign = "gguf:";

bool StartsWith(std::string_view text, std::string_view start) {
  return text.substr(0, start.size()) == start;
}

// A name as "h.N." (empty outside of layers), the part that the tables hold, and
// ".weight" or ".bias".
struct Parts {
  std::string_view layer;  // With its dots.
  std::string_view base;
  std::string_view suffix;
};

Parts Split(std::string_view name, std::string_view layer_prefix) {
  Parts parts;
  if (StartsWith(name, layer_prefix)) {
    const size_t dot = name.find('.', layer_prefix.size());
    if (dot != std::string_view::npos) {
      parts.layer = name.substr(layer_prefix.size(), dot + 1 - layer_prefix.size());
      name.remove_prefix(dot + 1);
    }
  }
  const size_t dot = name.rfind('.');
  parts.base = name.substr(0, dot);
  if (dot != std::string_view::npos) parts.suffix = name.substr(dot);
  return parts;
}

std::string Join(std::string_view layer_prefix, const Parts& parts,
                 std::string_view base) {
  std::string name;
  if (!parts.layer.empty()) name.append(layer_prefix).append(parts.layer);
  return name.append(base).append(parts.suffix);
}

// `base` in the other language; empty where it has no word for it.
std::string_view Translate(const Parts& parts, std::string_view NamePair::*from,
                           std::string_view NamePair::*to) {
  if (parts.layer.empty()) {
    for (const NamePair& pair : kGlobal) {
      if (pair.*from == parts.base) return pair.*to;
    }
  } else {
    for (const NamePair& pair : kLayer) {
      if (pair.*from == parts.base) return pair.*to;
    }
  }
  return {};
}

}  // namespace

std::string CanonicalTensorName(CheckpointFormat format, std::string_view name) {
  if (format == CheckpointFormat::kHuggingFace) {
    if (StartsWith(name, kPrefix)) name.remove_prefix(kPrefix.size());
    return std::string(name);
  }
  const Parts parts = Split(name, kGgufLayer);
  const std::string_view base =
      Translate(parts, &NamePair::gguf, &NamePair::hugging_face);
  if (!base.empty()) return Join(kHuggingFaceLayer, parts, base);
  if (parts.layer.empty()) return std::string(kForeign).append(name);
  return Join(kHuggingFaceLayer, parts, std::string(kForeign).append(parts.base));
}

std::string FileTensorName(CheckpointFormat format, std::string_view canonical) {
  if (format == CheckpointFormat::kHuggingFace) return std::string(canonical);
  const Parts parts = Split(canonical, kHuggingFaceLayer);
  const std::string_view base =
      Translate(parts, &NamePair::hugging_face, &NamePair::gguf);
  return base.empty() ? std::string(canonical) : Join(kGgufLayer, parts, base);
}

}  // namespace kvasm
