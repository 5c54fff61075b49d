// The safetensors format, read as a stream: a 64-bit header length, a JSON header, the
// tensors' bytes.

#ifndef KVASM_FORMATS_SAFETENSORS_H_
#define KVASM_FORMATS_SAFETENSORS_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/status.h"
#include "formats/tensor_sink.h"
#include "formats/tensor_stream.h"
#include "formats/weights_reader.h"

namespace kvasm {

// Holds the header while it arrives, then no more than a few kilobytes; wanted tensors
// must be F32, F16 or BF16.
//
// Every byte of the file must belong to exactly one tensor, as the format demands:
// overlaps, gaps and trailing bytes are kInvalidModel.
class SafetensorsReader : public WeightsReader {
 public:
  // `sink` must outlive the reader.
  explicit SafetensorsReader(TensorSink* sink) : sink_(sink), stream_(sink) {}

  Status Consume(const uint8_t* bytes, size_t count) override;
  Status Finish() override;
  uint64_t file_bytes() const override { return file_bytes_; }

 private:
  enum class State { kLength, kHeader, kData };

  Status ConsumeUnchecked(const uint8_t* bytes, size_t count);
  Status StartHeader();
  Status ParseHeader();

  TensorSink* sink_;
  Status status_;
  State state_ = State::kLength;
  uint64_t file_position_ = 0;
  uint64_t file_bytes_ = 0;
  uint64_t header_bytes_ = 0;
  std::string header_;  // At first the 8 bytes of the length.
  TensorStream stream_;
};

}  // namespace kvasm

#endif  // KVASM_FORMATS_SAFETENSORS_H_
