#include "model/gpt2_checkpoint.h"

#include <algorithm>
#include <cstring>
#include <string_view>
#include <unordered_set>
#include <utility>

namespace kvasm {
namespace {

using Shape = std::vector<uint64_t>;

constexpr char kLmHead[] = "lm_head.weight";
constexpr char kLmHeadBias[] = "lm_head.bias";

std::string ToString(const Shape& shape) {
  std::string text = "[";
  for (size_t i = 0; i < shape.size(); ++i) {
    if (i > 0) text += ", ";
    text += std::to_string(shape[i]);
  }
  return text + "]";
}

// What says which tensors there must be, for messages.
const char* ConfigOf(CheckpointFormat format) {
  return format == CheckpointFormat::kGguf ? "its metadata" : "config.json";
}

// Calls visit(name, shape) for each tensor that the config calls for, until one call
// returns an error: a config that claims a million layers costs nothing.
template <class Visit>
Status ForEachTensor(const Gpt2Config& c, CheckpointFormat format, Visit visit) {
  const auto linear = [&](const std::string& name, size_t n_in, size_t n_out) {
    const bool is_conv1d = format == CheckpointFormat::kHuggingFace;
    KVASM_RETURN_IF_ERROR(
        visit(name + ".weight", is_conv1d ? Shape{n_in, n_out} : Shape{n_out, n_in}));
    return visit(name + ".bias", Shape{n_out});
  };
  const auto layer_norm = [&](const std::string& name) {
    KVASM_RETURN_IF_ERROR(visit(name + ".weight", Shape{c.n_embd}));
    return visit(name + ".bias", Shape{c.n_embd});
  };
  KVASM_RETURN_IF_ERROR(visit("wte.weight", Shape{c.vocab_size, c.n_embd}));
  KVASM_RETURN_IF_ERROR(visit("wpe.weight", Shape{c.n_positions, c.n_embd}));
  KVASM_RETURN_IF_ERROR(layer_norm("ln_f"));
  for (size_t l = 0; l < c.n_layer; ++l) {
    const std::string h = "h." + std::to_string(l) + ".";
    KVASM_RETURN_IF_ERROR(layer_norm(h + "ln_1"));
    KVASM_RETURN_IF_ERROR(linear(h + "attn.c_attn", c.n_embd, c.n_qkv()));
    KVASM_RETURN_IF_ERROR(linear(h + "attn.c_proj", c.n_embd, c.n_embd));
    KVASM_RETURN_IF_ERROR(layer_norm(h + "ln_2"));
    KVASM_RETURN_IF_ERROR(linear(h + "mlp.c_fc", c.n_embd, c.n_inner));
    KVASM_RETURN_IF_ERROR(linear(h + "mlp.c_proj", c.n_inner, c.n_embd));
  }
  return OkStatus();
}

bool IsMaskBuffer(std::string_view name) {
  const auto ends_with = [name](std::string_view suffix) {
    return name.size() >= suffix.size() &&
           name.substr(name.size() - suffix.size()) == suffix;
  };
  return ends_with(".attn.bias") || ends_with(".attn.masked_bias");
}

std::string WithShard(const std::string& name, const std::string& shard) {
  return "'" + name + "' (" + shard + ")";
}

Status Invalid(std::string problem) {
  return Status(StatusCode::kInvalidModel, std::move(problem));
}

}  // namespace

Status Gpt2CheckpointSink::SetIndex(const SafetensorsIndex& index) {
  for (const auto& [name, shard] : index.shard_of) {
    if (!listed_.emplace(CanonicalTensorName(format_, name), shard).second) {
      return Invalid("model.safetensors.index.json: it lists '" + name +
                     "' both with and without the prefix 'transformer.'");
    }
  }
  return ForEachTensor(config_, format_, [&](const std::string& name, const Shape&) {
    if (listed_.count(name) > 0) return OkStatus();
    return Invalid("model.safetensors.index.json: it lacks the tensor '" + name +
                   "' that config.json calls for; do the two files belong together?");
  });
}

Status Gpt2CheckpointSink::CheckTensors(const std::vector<TensorInfo>& tensors) {
  std::unordered_map<std::string, const TensorInfo*> by_name;
  for (const TensorInfo& tensor : tensors) {
    const std::string name = CanonicalTensorName(format_, tensor.name);
    if (!by_name.emplace(name, &tensor).second) {
      return Invalid("the weights hold '" + name +
                     "' both with and without the prefix 'transformer.'");
    }
    const auto [seen, is_new] = seen_.emplace(name, file_);
    if (!is_new) {
      return Invalid("tensor '" + tensor.name + "' is in two files, '" + seen->second +
                     "' and '" + file_ + "'");
    }
  }
  std::unordered_set<std::string> known;
  const auto check = [&](const std::string& name, const Shape& shape) {
    known.insert(name);
    const auto found = by_name.find(name);
    if (found == by_name.end()) {
      if (!listed_.empty()) return OkStatus();  // It may be in another file.
      return Invalid("the weights lack the tensor '" + FileTensorName(format_, name) +
                     "' that " + ConfigOf(format_) + " calls for" +
                     (format_ == CheckpointFormat::kGguf
                          ? ""
                          : "; do the two files belong together?"));
    }
    if (found->second->shape == shape) return OkStatus();
    return Invalid("tensor '" + found->second->name + "' has the shape " +
                   ToString(found->second->shape) + ", but " + ConfigOf(format_) +
                   " calls for " + ToString(shape));
  };
  KVASM_RETURN_IF_ERROR(ForEachTensor(config_, format_, check));
  if (by_name.count(kLmHead) > 0) {
    KVASM_RETURN_IF_ERROR(check(kLmHead, {config_.vocab_size, config_.n_embd}));
  }
  if (by_name.count(kLmHeadBias) > 0) {
    KVASM_RETURN_IF_ERROR(check(kLmHeadBias, {config_.vocab_size}));
  }
  for (const auto& [name, tensor] : by_name) {
    if (name.substr(0, 2) == "h." && known.count(name) == 0 && !IsMaskBuffer(name)) {
      return Invalid("the layers hold the tensor '" + tensor->name +
                     "', which is no part of the GPT-2 that " + ConfigOf(format_) +
                     " describes");
    }
    if (!listed_.empty() && known.count(name) > 0 && listed_.count(name) == 0) {
      return Invalid("tensor '" + tensor->name + "' is in the file '" + file_ +
                     "', but model.safetensors.index.json does not list it; download "
                     "both again");
    }
  }
  return OkStatus();
}

Status Gpt2CheckpointSink::CreateWeights(bool separate_lm_head) {
  StatusOr<Gpt2Weights> weights =
      Gpt2Weights::Create(config_, dtype_, separate_lm_head);
  if (!weights.ok()) return weights.status();
  weights_ = std::move(*weights);
  const size_t most_outputs =
      std::max({config_.n_qkv(), config_.n_embd, config_.n_inner});
  StatusOr<MatrixWriter> writer =
      MatrixWriter::Create(most_outputs, dtype_, "the weights");
  if (!writer.ok()) return writer.status();
  writer_ = std::move(*writer);
  targets_by_name_ = MakeTargets();
  return OkStatus();
}

Gpt2CheckpointSink::TargetsByName Gpt2CheckpointSink::MakeTargets() {
  TargetsByName targets;
  const MatrixOrder linear_order =
      format_ == CheckpointFormat::kGguf ? MatrixOrder::kLinear : MatrixOrder::kConv1d;
  const auto matrix = [&](const std::string& name, MatrixOrder order,
                          PackedMatrix* packed) {
    targets[name] = {.kind = Target::Kind::kMatrix, .order = order, .matrix = packed};
  };
  const auto rows = [&](const std::string& name, AlignedBuffer<float>* buffer,
                        size_t n) {
    targets[name] = {.kind = Target::Kind::kRows,
                     .rows = buffer->data(),
                     .n = n,
                     .stride = PaddedSize(n)};
  };
  const auto layer_norm = [&](const std::string& name, LayerNormWeights* w) {
    rows(name + ".weight", &w->gain, config_.n_embd);
    rows(name + ".bias", &w->bias, config_.n_embd);
  };
  const auto linear = [&](const std::string& name, LinearWeights* w) {
    matrix(name + ".weight", linear_order, &w->weight);
    rows(name + ".bias", &w->bias, w->weight.n_out());
  };
  matrix("wte.weight", MatrixOrder::kLinear, &weights_.wte);
  rows("wpe.weight", &weights_.wpe, config_.n_embd);
  for (size_t l = 0; l < config_.n_layer; ++l) {
    const std::string h = "h." + std::to_string(l) + ".";
    Gpt2LayerWeights& layer = weights_.layers[l];
    layer_norm(h + "ln_1", &layer.ln_1);
    linear(h + "attn.c_attn", &layer.c_attn);
    linear(h + "attn.c_proj", &layer.c_proj);
    layer_norm(h + "ln_2", &layer.ln_2);
    linear(h + "mlp.c_fc", &layer.c_fc);
    linear(h + "mlp.c_proj", &layer.mlp_c_proj);
  }
  layer_norm("ln_f", &weights_.ln_f);
  matrix(kLmHead, MatrixOrder::kLinear, &weights_.lm_head);
  rows(kLmHeadBias, &weights_.lm_head_bias, config_.vocab_size);
  return targets;
}

Status Gpt2CheckpointSink::OnTensors(const std::vector<TensorInfo>& tensors,
                                     std::vector<bool>* wanted) {
  const bool is_first = targets_by_name_.empty();
  if (!is_first && listed_.empty()) {
    return Status(StatusCode::kInvalidArgument,
                  "a second file of weights needs model.safetensors.index.json");
  }
  KVASM_RETURN_IF_ERROR(CheckTensors(tensors));
  if (is_first) {
    const NameMap& names = listed_.empty() ? seen_ : listed_;
    KVASM_RETURN_IF_ERROR(CreateWeights(names.count(kLmHead) > 0));
  }
  targets_.clear();
  for (size_t t = 0; t < tensors.size(); ++t) {
    const auto target =
        targets_by_name_.find(CanonicalTensorName(format_, tensors[t].name));
    targets_.push_back(target == targets_by_name_.end() ? Target() : target->second);
    (*wanted)[t] = targets_.back().kind != Target::Kind::kSkip;
  }
  return OkStatus();
}

Status Gpt2CheckpointSink::Finish() const {
  constexpr size_t kNamed = 3;
  std::vector<std::string> missing;
  for (const auto& [name, shard] : listed_) {
    const bool is_needed = targets_by_name_.count(name) > 0;
    if (is_needed && seen_.count(name) == 0) {
      missing.push_back(WithShard(name, shard));
    }
  }
  if (missing.empty()) return OkStatus();
  std::sort(missing.begin(), missing.end());
  std::string names;
  for (size_t i = 0; i < std::min(missing.size(), kNamed); ++i) {
    if (i > 0) names += ", ";
    names += missing[i];
  }
  if (missing.size() > kNamed) {
    names += " and " + std::to_string(missing.size() - kNamed) + " more";
  }
  return Invalid(
      "model.safetensors.index.json lists tensors that are in none of the "
      "files: " +
      names);
}

void Gpt2CheckpointSink::OnElements(size_t tensor, uint64_t first,
                                    const float* elements, size_t count) {
  const Target& target = targets_[tensor];
  size_t position = static_cast<size_t>(first);
  switch (target.kind) {
    case Target::Kind::kSkip:
      break;
    case Target::Kind::kMatrix:
      writer_.Write(target.order, position, elements, count, target.matrix);
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
