// The safetensors format, read as a stream: a 64-bit header length, a JSON header, the
// tensors' bytes.

#ifndef KVASM_FORMATS_SAFETENSORS_H_
#define KVASM_FORMATS_SAFETENSORS_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "formats/tensor_sink.h"

namespace kvasm {

// Feed it the file in pieces of any size. Holds the header while it arrives, then no
// more than a few kilobytes; wanted tensors (F32, F16, BF16) reach the sink as floats.
//
// Every byte of the file must belong to exactly one tensor, as the format demands:
// overlaps, gaps and trailing bytes are kInvalidModel, a file that ends early is
// kTruncated. After an error, every further call returns it again.
class SafetensorsReader {
 public:
  // `sink` must outlive the reader.
  explicit SafetensorsReader(TensorSink* sink) : sink_(sink) {}

  Status Consume(const uint8_t* bytes, size_t count);

  // Call when the file has ended.
  Status Finish();

  // The size of the whole file, as its header announces it; 0 until the header is
  // through.
  uint64_t file_bytes() const { return file_bytes_; }

 private:
  struct Extent {
    size_t tensor;
    uint64_t begin;  // From the end of the header.
    uint64_t end;
    size_t element_bytes;
    bool wanted;
  };
  enum class State { kLength, kHeader, kData };

  Status ConsumeUnchecked(const uint8_t* bytes, size_t count);
  Status StartHeader();
  Status ParseHeader();
  void ConsumeData(const uint8_t* bytes, size_t count);
  void Decode(const Extent& extent, uint64_t first, const uint8_t* bytes, size_t count);
  // Moves past extents that are complete at data_position_.
  void SkipFinishedExtents();

  TensorSink* sink_;
  Status status_;
  State state_ = State::kLength;
  uint64_t file_position_ = 0;
  uint64_t file_bytes_ = 0;
  uint64_t header_bytes_ = 0;
  std::string header_;  // At first the 8 bytes of the length.
  std::vector<TensorInfo> tensors_;
  std::vector<Extent> extents_;  // In file order.
  size_t extent_ = 0;
  uint64_t data_position_ = 0;
  // An element cut in two by the end of a piece.
  uint8_t partial_[4] = {};
  size_t partial_bytes_ = 0;
};

}  // namespace kvasm

#endif  // KVASM_FORMATS_SAFETENSORS_H_
