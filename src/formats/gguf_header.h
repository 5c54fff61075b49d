#ifndef KVASM_FORMATS_GGUF_HEADER_H_
#define KVASM_FORMATS_GGUF_HEADER_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "formats/gguf_metadata.h"

namespace kvasm {

// One of the header's entries.
struct GgufTensor {
  std::string name;
  std::vector<uint64_t> dims;  // As stored: the first one's elements lie side by side.
  uint32_t type = 0;
  uint64_t offset = 0;  // From the start of the data.
};

// Parses the header of a GGUF file as it arrives: versions 2 and 3, little endian.
// Holds what it has parsed, and one unfinished number or text. Sizes that a file claims
// cost nothing until their bytes come, and the header may have 100 MB at the most.
//
// Of arrays, the tokenizer's tokens, merges and token types are kept; others are
// skipped. Arrays of arrays are kUnsupported.
class GgufHeaderParser {
 public:
  GgufHeaderParser();

  // Takes bytes up to the end of the header, and adds their number to *used.
  Status Consume(const uint8_t* bytes, size_t count, size_t* used);

  bool done() const { return state_ == State::kDone && skip_ == 0; }
  // Bytes taken so far: once done, the length of the header without its padding.
  uint64_t bytes() const { return bytes_; }

  // Once done.
  const GgufMetadata& metadata() const { return metadata_; }
  const std::vector<GgufTensor>& tensors() const { return tensors_; }

 private:
  // What the next item of item_size_ bytes is.
  enum class State {
    kStart,
    kKeyLength,
    kKey,
    kValueType,
    kNumber,
    kStringLength,
    kString,
    kArrayHead,
    kArrayNumber,
    kArrayStringLength,
    kArrayString,
    kTensorNameLength,
    kTensorName,
    kTensorDimCount,
    kTensorDims,
    kTensorTypeAndOffset,
    kDone,
  };

  void Expect(State state, size_t size);
  Status ExpectText(State state, uint64_t limit);
  Status HandleItem();
  Status HandleStart();
  Status HandleKey();
  Status HandleValueType();
  Status HandleNumber();
  Status HandleArrayHead();
  void HandleTensorName();
  Status HandleTensorDimCount();

  // Stores the value of key_.
  void EndValue(GgufValue value);
  void NextPair();
  void NextArrayElement();
  void NextTensor();

  uint64_t ItemUint(size_t offset, size_t size) const;
  Status InvalidKey(const std::string& problem) const;

  State state_;
  std::string item_;
  size_t item_size_ = 0;
  uint64_t skip_ = 0;  // Bytes to pass over before the item.
  uint64_t bytes_ = 0;

  uint64_t pairs_left_ = 0;
  uint64_t tensors_left_ = 0;
  std::string key_;
  uint32_t type_ = 0;  // Of the value, or of the array's elements.
  uint64_t elements_left_ = 0;
  GgufValue array_;

  GgufMetadata metadata_;
  std::vector<GgufTensor> tensors_;
};

}  // namespace kvasm

#endif  // KVASM_FORMATS_GGUF_HEADER_H_
