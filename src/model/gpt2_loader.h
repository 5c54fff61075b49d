// From the bytes of a model's files to its weights.

#ifndef KVASM_MODEL_GPT2_LOADER_H_
#define KVASM_MODEL_GPT2_LOADER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "formats/gguf.h"
#include "formats/gguf_metadata.h"
#include "formats/safetensors_index.h"
#include "formats/tensor_sink.h"
#include "formats/weights_reader.h"
#include "model/gpt2_checkpoint.h"
#include "model/gpt2_config.h"
#include "model/gpt2_weights.h"

namespace kvasm {

// Takes the weights' files one after the other, each in pieces of any size, and tells
// their format by their first bytes.
//
//   SetConfig, Consume..., Finish                            a safetensors file
//   SetConfig, SetIndex, (NextFile, Consume...)..., Finish   the shards of an index
//   Consume..., Finish                                       a GGUF file
//
// A GGUF file brings its own config, which replaces any other.
//
// After an error, every further call returns it again.
class Gpt2Loader {
 public:
  // `dtype`: what the matrices are stored as in memory, whatever the files have.
  explicit Gpt2Loader(WeightDtype dtype = WeightDtype::kF32) : dtype_(dtype) {}
  // The readers and the sink hold addresses of members.
  Gpt2Loader(const Gpt2Loader&) = delete;
  Gpt2Loader& operator=(const Gpt2Loader&) = delete;

  // The text of config.json.
  Status SetConfig(std::string_view json);

  // The text of model.safetensors.index.json, after the config and before the first
  // byte of the weights.
  Status SetIndex(std::string_view json);
  const std::vector<std::string>& shards() const { return index_.shards; }

  // The file before, if there was one, has ended, and this one begins. `name` is for
  // messages.
  Status NextFile(std::string name);
  Status Consume(const uint8_t* bytes, size_t count);
  // The last file has ended, and nothing is missing.
  Status Finish();

  // The size of the current file, as its header announces it; 0 until that is through.
  uint64_t file_bytes() const { return reader_ ? reader_->file_bytes() : 0; }

  // Once it is known; else null.
  const Gpt2Config* config() const { return config_ ? &*config_ : nullptr; }

  // A GGUF file's, once its header is through; else null.
  const GgufMetadata* gguf() const {
    return gguf_ != nullptr && reader_->file_bytes() > 0 ? &gguf_->metadata() : nullptr;
  }

  // Complete once Finish() was ok.
  Gpt2Weights& weights() { return sink_->weights(); }

 private:
  // Makes a checkpoint of what a GGUF file brings.
  class GgufSink : public TensorSink {
   public:
    explicit GgufSink(Gpt2Loader* loader) : loader_(loader) {}
    Status OnTensors(const std::vector<TensorInfo>& tensors,
                     std::vector<bool>* wanted) override;
    void OnElements(size_t tensor, uint64_t first, const float* elements,
                    size_t count) override;

   private:
    Gpt2Loader* loader_;
  };

  Status Keep(Status status);
  Status BeginFile();
  Status EndFile();

  WeightDtype dtype_;
  Status status_;
  std::optional<Gpt2Config> config_;
  SafetensorsIndex index_;
  std::unique_ptr<Gpt2CheckpointSink> sink_;
  GgufSink gguf_sink_{this};
  std::unique_ptr<TensorSink> refusing_sink_;  // Where there is no config.
  std::string file_;
  std::string head_;  // The first bytes, until they tell the format.
  std::unique_ptr<WeightsReader> reader_;
  const GgufReader* gguf_ = nullptr;  // reader_, if it is one.
};

}  // namespace kvasm

#endif  // KVASM_MODEL_GPT2_LOADER_H_
