// The part of a weights file that holds the tensors' bytes, as it streams by.

#ifndef KVASM_FORMATS_TENSOR_STREAM_H_
#define KVASM_FORMATS_TENSOR_STREAM_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "formats/tensor_encoding.h"
#include "formats/tensor_sink.h"

namespace kvasm {

// Cuts the bytes into tensors, and hands the decoded elements to the sink. Holds no
// more than a block that the end of a piece has cut in two.
class TensorStream {
 public:
  struct Extent {
    size_t tensor;
    uint64_t begin;  // Bytes from the start of the data.
    uint64_t end;
    const TensorEncoding* encoding;  // Null: the tensor is skipped.
  };

  // `sink` must outlive the stream.
  explicit TensorStream(TensorSink* sink) : sink_(sink) {}

  // The tensors in the order of their bytes, without overlaps, each of whole blocks.
  // Bytes between them are skipped.
  void Start(std::vector<Extent> extents);

  void Consume(const uint8_t* bytes, size_t count);

 private:
  void ConsumeExtent(const Extent& extent, const uint8_t* bytes, size_t count);
  void Decode(const Extent& extent, uint64_t block, const uint8_t* bytes,
              size_t blocks);
  // Moves past extents that are complete at position_.
  void SkipFinishedExtents();

  TensorSink* sink_;
  std::vector<Extent> extents_;
  size_t extent_ = 0;
  uint64_t position_ = 0;
  uint8_t partial_[kMaxBlockBytes] = {};
  size_t partial_bytes_ = 0;
};

}  // namespace kvasm

#endif  // KVASM_FORMATS_TENSOR_STREAM_H_
