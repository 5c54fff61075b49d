// What the file formats call GPT-2's tensors.

#ifndef KVASM_MODEL_GPT2_TENSOR_NAMES_H_
#define KVASM_MODEL_GPT2_TENSOR_NAMES_H_

#include <string>
#include <string_view>

namespace kvasm {

enum class CheckpointFormat {
  // "h.0.attn.c_attn.weight", perhaps behind "transformer."; Conv1D weights [in, out].
  kHuggingFace,
  // "blk.0.attn_qkv.weight"; the same weights as [out, in].
  kGguf,
};

// Hugging Face's name without the prefix, by which the model knows a tensor. A GGUF
// name that GPT-2 has no use for stays apart from every name of Hugging Face's: inside
// a layer ("blk.0.other") it becomes one of that layer, elsewhere it gets a "gguf:" in
// front.
std::string CanonicalTensorName(CheckpointFormat format, std::string_view name);

// The other way round, for messages: what a file of the format calls a tensor of GPT-2.
std::string FileTensorName(CheckpointFormat format, std::string_view canonical);

}  // namespace kvasm

#endif  // KVASM_MODEL_GPT2_TENSOR_NAMES_H_
