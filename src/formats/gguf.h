// The GGUF format, read as a stream: a header of key-value pairs and tensors' shapes,
// then the tensors' bytes.

#ifndef KVASM_FORMATS_GGUF_H_
#define KVASM_FORMATS_GGUF_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/status.h"
#include "formats/gguf_header.h"
#include "formats/gguf_metadata.h"
#include "formats/tensor_sink.h"
#include "formats/tensor_stream.h"
#include "formats/weights_reader.h"

namespace kvasm {

// Holds the header while it arrives, its metadata for as long as it lives, and no more
// than a few kilobytes of the rest. Quantised tensors reach the sink as the floats that
// they stand for. Shapes are as the sink wants them, the other way round than GGUF
// writes them.
//
// The tensors' bytes must follow one another without overlaps, with only the padding
// between them that the alignment asks for. kUnsupported where a tensor is stored in a
// type that GgufEncoding does not know.
class GgufReader : public WeightsReader {
 public:
  // `sink` must outlive the reader.
  explicit GgufReader(TensorSink* sink) : sink_(sink), stream_(sink) {}

  Status Consume(const uint8_t* bytes, size_t count) override;
  Status Finish() override;

  // With the padding behind the last tensor, which a file need not have.
  uint64_t file_bytes() const override { return file_bytes_; }

  // Complete when the sink's OnTensors is called.
  const GgufMetadata& metadata() const { return header_.metadata(); }

 private:
  Status ConsumeUnchecked(const uint8_t* bytes, size_t count);
  Status EndHeader();
  // Where each tensor lies, in the order of their bytes.
  StatusOr<std::vector<TensorStream::Extent>> PlaceTensors(uint64_t alignment) const;

  TensorSink* sink_;
  Status status_;
  GgufHeaderParser header_;
  uint64_t file_position_ = 0;
  uint64_t data_begin_ = 0;
  uint64_t data_end_ = 0;    // Where the last tensor ends.
  uint64_t file_bytes_ = 0;  // 0 until the header is through.
  TensorStream stream_;
};

}  // namespace kvasm

#endif  // KVASM_FORMATS_GGUF_H_
