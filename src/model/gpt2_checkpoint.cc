#include "model/gpt2_checkpoint.h"

#include <algorithm>
#include <cstring>
#include <string_view>
#include <unordered_set>
#include <utility>

namespace kvasm {
namespace {

using Shape = std::vector<uint64_t>;

constexpr std::string_view kPrefix = "transformer.";
constexpr std::string_view kLmHead = "lm_head.weight";
constexpr std::string_view kLmHeadBias = "lm_head.bias";

std::string_view WithoutPrefix(std::string_view name) {
  if (name.substr(0, kPrefix.size()) == kPrefix) name.remove_prefix(kPrefix.size());
  return name;
}

std::string ToString(const Shape& shape) {
  std::string text = "[";
  for (size_t i = 0; i < shape.size(); ++i) {
    if (i > 0) text += ", ";
    text += std::to_string(shape[i]);
  }
  return text + "]";
}

// Calls visit(name, shape) for each tensor that a layer of the config must have.
template <class Visit>
void ForEachLayerTensor(const Gpt2Config& c, size_t layer, Visit visit) {
  const std::string h = "h." + std::to_string(layer) + ".";
  visit(h + "ln_1.weight", Shape{c.n_embd});
  visit(h + "ln_1.bias", Shape{c.n_embd});
  visit(h + "attn.c_attn.weight", Shape{c.n_embd, c.n_qkv()});
  visit(h + "attn.c_attn.bias", Shape{c.n_qkv()});
  visit(h + "attn.c_proj.weight", Shape{c.n_embd, c.n_embd});
  visit(h + "attn.c_proj.bias", Shape{c.n_embd});
  visit(h + "ln_2.weight", Shape{c.n_embd});
  visit(h + "ln_2.bias", Shape{c.n_embd});
  visit(h + "mlp.c_fc.weight", Shape{c.n_embd, c.n_inner});
  visit(h + "mlp.c_fc.bias", Shape{c.n_inner});
  visit(h + "mlp.c_proj.weight", Shape{c.n_inner, c.n_embd});
  visit(h + "mlp.c_proj.bias", Shape{c.n_embd});
}

bool IsMaskBuffer(std::string_view name) {
  const auto ends_with = [name](std::string_view suffix) {
    return name.size() >= suffix.size() &&
           name.substr(name.size() - suffix.size()) == suffix;
  };
  return ends_with(".attn.bias") || ends_with(".attn.masked_bias");
}

using TensorsByName = std::unordered_map<std::string, const TensorInfo*>;

Status CheckTensor(const TensorsByName& tensors, const std::string& name,
                   const Shape& shape) {
  const auto found = tensors.find(name);
  if (found == tensors.end()) {
    return Status(
        StatusCode::kInvalidModel,
        "the weights lack the tensor '" + name +
            "' that config.json calls for; do the two files belong together?");
  }
  if (found->second->shape != shape) {
    return Status(StatusCode::kInvalidModel,
                  "tensor '" + found->second->name + "' has the shape " +
                      ToString(found->second->shape) + ", but config.json calls for " +
                      ToString(shape));
  }
  return OkStatus();
}

// Everything the config calls for is there, and the layers hold nothing else.
Status CheckTensors(const Gpt2Config& c, const TensorsByName& tensors) {
  Status status;
  std::unordered_set<std::string> known;
  const auto check = [&](const std::string& name, const Shape& shape) {
    if (status.ok()) status = CheckTensor(tensors, name, shape);
    known.insert(name);
  };
  check("wte.weight", {c.vocab_size, c.n_embd});
  check("wpe.weight", {c.n_positions, c.n_embd});
  check("ln_f.weight", {c.n_embd});
  check("ln_f.bias", {c.n_embd});
  // Stops at the first missing tensor, so a config that claims a million layers costs
  // nothing.
  for (size_t l = 0; l < c.n_layer && status.ok(); ++l) ForEachLayerTensor(c, l, check);
  if (tensors.count(std::string(kLmHead)) > 0) {
    check(std::string(kLmHead), {c.vocab_size, c.n_embd});
  }
  if (tensors.count(std::string(kLmHeadBias)) > 0) {
    check(std::string(kLmHeadBias), {c.vocab_size});
  }
  KVASM_RETURN_IF_ERROR(std::move(status));
  for (const auto& [name, tensor] : tensors) {
    if (name.substr(0, 2) == "h." && known.count(name) == 0 && !IsMaskBuffer(name)) {
      return Status(StatusCode::kInvalidModel,
                    "the layers hold the tensor '" + tensor->name +
                        "', which is no part of the GPT-2 that config.json describes");
    }
  }
  return OkStatus();
}

}  // namespace

Gpt2CheckpointSink::TargetsByName Gpt2CheckpointSink::MakeTargets() {
  TargetsByName targets;
  const auto rows = [&](const std::string& name, AlignedBuffer<float>* buffer,
                        size_t n) {
    targets[name] = {Target::Kind::kRows, nullptr, buffer->data(), n, PaddedSize(n)};
  };
  const auto layer_norm = [&](const std::string& name, LayerNormWeights* w) {
    rows(name + ".weight", &w->gain, config_.n_embd);
    rows(name + ".bias", &w->bias, config_.n_embd);
  };
  const auto conv1d = [&](const std::string& name, LinearWeights* w) {
    targets[name + ".weight"] = {Target::Kind::kConv1d, &w->weight};
    rows(name + ".bias", &w->bias, w->weight.n_out());
  };
  targets["wte.weight"] = {Target::Kind::kLinear, &weights_.wte};
  rows("wpe.weight", &weights_.wpe, config_.n_embd);
  for (size_t l = 0; l < config_.n_layer; ++l) {
    const std::string h = "h." + std::to_string(l) + ".";
    Gpt2LayerWeights& layer = weights_.layers[l];
    layer_norm(h + "ln_1", &layer.ln_1);
    conv1d(h + "attn.c_attn", &layer.c_attn);
    conv1d(h + "attn.c_proj", &layer.c_proj);
    layer_norm(h + "ln_2", &layer.ln_2);
    conv1d(h + "mlp.c_fc", &layer.c_fc);
    conv1d(h + "mlp.c_proj", &layer.mlp_c_proj);
  }
  layer_norm("ln_f", &weights_.ln_f);
  targets[std::string(kLmHead)] = {Target::Kind::kLinear, &weights_.lm_head};
  rows(std::string(kLmHeadBias), &weights_.lm_head_bias, config_.vocab_size);
  return targets;
}

Status Gpt2CheckpointSink::OnTensors(const std::vector<TensorInfo>& tensors,
                                     std::vector<bool>* wanted) {
  TensorsByName by_name;
  for (const TensorInfo& tensor : tensors) {
    if (!by_name.emplace(WithoutPrefix(tensor.name), &tensor).second) {
      return Status(StatusCode::kInvalidModel,
                    "the weights hold '" + std::string(WithoutPrefix(tensor.name)) +
                        "' both with and without the prefix 'transformer.'");
    }
  }
  KVASM_RETURN_IF_ERROR(CheckTensors(config_, by_name));
  StatusOr<Gpt2Weights> weights =
      Gpt2Weights::Create(config_, by_name.count(std::string(kLmHead)) > 0);
  if (!weights.ok()) return weights.status();
  weights_ = std::move(*weights);

  const TargetsByName targets = MakeTargets();
  for (size_t t = 0; t < tensors.size(); ++t) {
    const auto target = targets.find(std::string(WithoutPrefix(tensors[t].name)));
    targets_.push_back(target == targets.end() ? Target() : target->second);
    (*wanted)[t] = targets_.back().kind != Target::Kind::kSkip;
  }
  return OkStatus();
}

void Gpt2CheckpointSink::OnElements(size_t tensor, uint64_t first,
                                    const float* elements, size_t count) {
  const Target& target = targets_[tensor];
  size_t position = static_cast<size_t>(first);
  switch (target.kind) {
    case Target::Kind::kSkip:
      break;
    case Target::Kind::kConv1d:
      target.matrix->StoreConv1d(position, elements, count);
      break;
    case Target::Kind::kLinear:
      target.matrix->StoreLinear(position, elements, count);
      break;
    case Target::Kind::kRows:
      while (count > 0) {
        const size_t column = position % target.n;
        const size_t run = std::min(target.n - column, count);
        std::memcpy(target.rows + position / target.n * target.stride + column,
                    elements, run * sizeof(float));
        position += run;
        elements += run;
        count -= run;
      }
      break;
  }
}

}  // namespace kvasm
