#include "model/gpt2_loader.h"

#include <algorithm>
#include <utility>

#include "formats/safetensors.h"
#include "model/gguf_config.h"

namespace kvasm {
namespace {

constexpr std::string_view kGgufMagic = "GGUF";

// For weights that come without the config they need.
class RefusingSink : public TensorSink {
 public:
  Status OnTensors(const std::vector<TensorInfo>& /*tensors*/,
                   std::vector<bool>* /*wanted*/) override {
    return Status(StatusCode::kInvalidConfig,
                  "safetensors weights need the config.json that belongs to them");
  }
  void OnElements(size_t /*tensor*/, uint64_t /*first*/, const float* /*elements*/,
                  size_t /*count*/) override {}
};

}  // namespace

Status Gpt2Loader::GgufSink::OnTensors(const std::vector<TensorInfo>& tensors,
                                       std::vector<bool>* wanted) {
  StatusOr<Gpt2Config> config = ReadGgufConfig(loader_->gguf_->metadata(), tensors);
  if (!config.ok()) return config.status();
  loader_->config_ = *config;
  loader_->sink_ = std::make_unique<Gpt2CheckpointSink>(
      *config, CheckpointFormat::kGguf, loader_->dtype_);
  return loader_->sink_->OnTensors(tensors, wanted);
}

void Gpt2Loader::GgufSink::OnElements(size_t tensor, uint64_t first,
                                      const float* elements, size_t count) {
  loader_->sink_->OnElements(tensor, first, elements, count);
}

Status Gpt2Loader::Keep(Status status) {
  if (status_.ok()) status_ = std::move(status);
  return status_;
}

Status Gpt2Loader::SetConfig(std::string_view json) {
  if (!status_.ok()) return status_;
  StatusOr<Gpt2Config> config = ParseGpt2Config(json);
  if (!config.ok()) return Keep(config.status());
  config_ = *config;
  sink_ = std::make_unique<Gpt2CheckpointSink>(*config_, CheckpointFormat::kHuggingFace,
                                               dtype_);
  return OkStatus();
}

Status Gpt2Loader::SetIndex(std::string_view json) {
  if (!status_.ok()) return status_;
  if (!sink_) {
    return Keep(Status(StatusCode::kInvalidConfig,
                       "sharded weights need the config.json that belongs to them"));
  }
  StatusOr<SafetensorsIndex> index = ParseSafetensorsIndex(json);
  if (!index.ok()) return Keep(index.status());
  index_ = std::move(*index);
  return Keep(sink_->SetIndex(index_));
}

Status Gpt2Loader::NextFile(std::string name) {
  if (!status_.ok()) return status_;
  if (reader_ || !head_.empty()) KVASM_RETURN_IF_ERROR(EndFile());
  if (gguf_ != nullptr) {
    return Keep(Status(StatusCode::kInvalidArgument,
                       "a GGUF file is whole; no other file may follow it"));
  }
  file_ = std::move(name);
  head_.clear();
  reader_.reset();
  return OkStatus();
}

Status Gpt2Loader::BeginFile() {
  if (head_ == kGgufMagic) {
    if (!index_.shards.empty()) {
      return Status(StatusCode::kInvalidModel,
                    "'" + file_ + "' is a GGUF file, not a shard of safetensors");
    }
    auto reader = std::make_unique<GgufReader>(&gguf_sink_);
    gguf_ = reader.get();
    reader_ = std::move(reader);
  } else {
    TensorSink* sink = sink_.get();
    if (sink_) {
      sink_->SetFile(file_);
    } else {
      refusing_sink_ = std::make_unique<RefusingSink>();
      sink = refusing_sink_.get();
    }
    reader_ = std::make_unique<SafetensorsReader>(sink);
  }
  return reader_->Consume(reinterpret_cast<const uint8_t*>(head_.data()), head_.size());
}

Status Gpt2Loader::Consume(const uint8_t* bytes, size_t count) {
  if (!status_.ok()) return status_;
  if (!reader_) {
    const size_t used = std::min(count, kGgufMagic.size() - head_.size());
    head_.append(reinterpret_cast<const char*>(bytes), used);
    bytes += used;
    count -= used;
    if (head_.size() < kGgufMagic.size()) return OkStatus();
    KVASM_RETURN_IF_ERROR(Keep(BeginFile()));
  }
  return Keep(reader_->Consume(bytes, count));
}

Status Gpt2Loader::EndFile() {
  // A file too short to tell what it is.
  if (!reader_) KVASM_RETURN_IF_ERROR(Keep(BeginFile()));
  return Keep(reader_->Finish());
}

Status Gpt2Loader::Finish() {
  if (!status_.ok()) return status_;
  KVASM_RETURN_IF_ERROR(EndFile());
  return Keep(sink_->Finish());
}

}  // namespace kvasm
