// Takes the tensors of a Hugging Face GPT-2 checkpoint to their places in Gpt2Weights.

#ifndef KVASM_MODEL_GPT2_CHECKPOINT_H_
#define KVASM_MODEL_GPT2_CHECKPOINT_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/status.h"
#include "formats/tensor_sink.h"
#include "model/gpt2_config.h"
#include "model/gpt2_weights.h"

namespace kvasm {

// Names may carry the prefix "transformer.". Each tensor that the config calls for must
// be there, in the right shape. Mask buffers (attn.bias, attn.masked_bias) are skipped;
// any other unknown tensor inside a layer is an error, since it would change what the
// layer computes; unknown tensors outside the layers (a classifier's head) can't, and
// are skipped. lm_head.weight is used where it is there, else the head is tied to wte.
class Gpt2CheckpointSink : public TensorSink {
 public:
  explicit Gpt2CheckpointSink(const Gpt2Config& config) : config_(config) {}

  Status OnTensors(const std::vector<TensorInfo>& tensors,
                   std::vector<bool>* wanted) override;
  void OnElements(size_t tensor, uint64_t first, const float* elements,
                  size_t count) override;

  // The weights; complete once the reader's Finish() was ok.
  Gpt2Weights& weights() { return weights_; }

 private:
  // Where a tensor goes, and in which order its elements come.
  struct Target {
    enum class Kind { kSkip, kConv1d, kLinear, kRows } kind = Kind::kSkip;
    PackedMatrix* matrix = nullptr;  // kConv1d, kLinear
    float* rows = nullptr;  // kRows: [*, stride], of which n columns are filled
    size_t n = 0;
    size_t stride = 0;
  };
  using TargetsByName = std::unordered_map<std::string, Target>;

  TargetsByName MakeTargets();

  Gpt2Config config_;
  Gpt2Weights weights_;
  std::vector<Target> targets_;  // By tensor.
};

}  // namespace kvasm

#endif  // KVASM_MODEL_GPT2_CHECKPOINT_H_
