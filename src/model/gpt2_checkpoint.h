// Takes the tensors of a GPT-2 checkpoint to their places in Gpt2Weights.

#ifndef KVASM_MODEL_GPT2_CHECKPOINT_H_
#define KVASM_MODEL_GPT2_CHECKPOINT_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/status.h"
#include "formats/safetensors_index.h"
#include "formats/tensor_sink.h"
#include "kernels/matrix_writer.h"
#include "model/gpt2_config.h"
#include "model/gpt2_tensor_names.h"
#include "model/gpt2_weights.h"

namespace kvasm {

// Each tensor that the config calls for must be there, once, in the right shape. Mask
// buffers (attn.bias, attn.masked_bias) are skipped; any other unknown tensor inside a
// layer is an error, since it would change what the layer computes; unknown tensors
// outside the layers (a classifier's head) can't, and are skipped. lm_head.weight is
// used where it is there, else the head is tied to wte.
//
// A checkpoint in several files has an index, which must list all that the model needs:
// what it leaves out is an error if the model would use it, and is skipped otherwise.
// In which of the files a listed tensor is does not matter.
class Gpt2CheckpointSink : public TensorSink {
 public:
  // `dtype`: what the matrices are stored as in memory.
  explicit Gpt2CheckpointSink(const Gpt2Config& config,
                              CheckpointFormat format = CheckpointFormat::kHuggingFace,
                              WeightDtype dtype = WeightDtype::kF32)
      : config_(config), format_(format), dtype_(dtype) {}

  // Before the first OnTensors: the tensors come in several files.
  Status SetIndex(const SafetensorsIndex& index);

  // The name of the file whose tensors come next, for messages.
  void SetFile(std::string name) { file_ = std::move(name); }

  // With an index, once for each file.
  Status OnTensors(const std::vector<TensorInfo>& tensors,
                   std::vector<bool>* wanted) override;
  void OnElements(size_t tensor, uint64_t first, const float* elements,
                  size_t count) override;

  // After the last file: whether all that the index lists has come.
  Status Finish() const;

  // The weights; complete once the reader's Finish() and this one were ok.
  Gpt2Weights& weights() { return weights_; }

 private:
  // Where a tensor goes, and in which order its elements come.
  struct Target {
    enum class Kind { kSkip, kMatrix, kRows } kind = Kind::kSkip;
    MatrixOrder order = MatrixOrder::kLinear;
    PackedMatrix* matrix = nullptr;  // kMatrix
    float* rows = nullptr;  // kRows: [*, stride], of which n columns are filled
    size_t n = 0;
    size_t stride = 0;
  };
  using TargetsByName = std::unordered_map<std::string, Target>;

  using NameMap = std::unordered_map<std::string, std::string>;

  Status CheckTensors(const std::vector<TensorInfo>& tensors);
  Status CreateWeights(bool separate_lm_head);
  TargetsByName MakeTargets();

  Gpt2Config config_;
  CheckpointFormat format_;
  WeightDtype dtype_;
  std::string file_;
  // By canonical name: the shard that the index names. Empty without an index.
  NameMap listed_;
  // By canonical name: the file it came in.
  NameMap seen_;
  Gpt2Weights weights_;
  MatrixWriter writer_;
  TargetsByName targets_by_name_;  // Empty until the weights are there.
  std::vector<Target> targets_;    // By tensor of the current file.
};

}  // namespace kvasm

#endif  // KVASM_MODEL_GPT2_CHECKPOINT_H_
