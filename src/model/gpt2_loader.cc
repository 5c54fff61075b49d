#include "model/gpt2_loader.h"

#include <utility>

namespace kvasm {

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
  StatusOr<SafetensorsIndex> index = ParseSafetensorsIndex(json);
  if (!index.ok()) return Keep(index.status());
  index_ = std::move(*index);
  return Keep(sink_->SetIndex(index_));
}

Status Gpt2Loader::NextFile(std::string name) {
  if (!status_.ok()) return status_;
  KVASM_RETURN_IF_ERROR(EndFile());
  sink_->SetFile(std::move(name));
  reader_ = std::make_unique<SafetensorsReader>(sink_.get());
  return OkStatus();
}

Status Gpt2Loader::Consume(const uint8_t* bytes, size_t count) {
  if (!status_.ok()) return status_;
  if (!reader_) KVASM_RETURN_IF_ERROR(NextFile(""));
  return Keep(reader_->Consume(bytes, count));
}

Status Gpt2Loader::EndFile() { return reader_ ? Keep(reader_->Finish()) : OkStatus(); }

Status Gpt2Loader::Finish() {
  if (!status_.ok()) return status_;
  if (!reader_) KVASM_RETURN_IF_ERROR(NextFile(""));
  KVASM_RETURN_IF_ERROR(EndFile());
  return Keep(sink_->Finish());
}

}  // namespace kvasm
