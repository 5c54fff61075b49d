#ifndef KVASM_FORMATS_WEIGHTS_READER_H_
#define KVASM_FORMATS_WEIGHTS_READER_H_

#include <cstddef>
#include <cstdint>

#include "base/status.h"

namespace kvasm {

// Reads a file of weights as a stream: feed it the bytes in pieces of any size, and
// they reach a TensorSink. After an error, every further call returns it again.
class WeightsReader {
 public:
  virtual ~WeightsReader() = default;

  virtual Status Consume(const uint8_t* bytes, size_t count) = 0;

  // Call when the file has ended. kTruncated where that was too early.
  virtual Status Finish() = 0;

  // The size of the whole file, as its header announces it; 0 until the header is
  // through.
  virtual uint64_t file_bytes() const = 0;
};

}  // namespace kvasm

#endif  // KVASM_FORMATS_WEIGHTS_READER_H_
