// What the targets for formats of weights have in common.

#ifndef KVASM_TESTS_FUZZ_WEIGHTS_FUZZ_H_
#define KVASM_TESTS_FUZZ_WEIGHTS_FUZZ_H_

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "formats/tensor_sink.h"
#include "formats/weights_reader.h"

namespace kvasm {

// Stops the fuzzer where a promise is broken.
inline void Require(bool holds) {
  if (!holds) std::abort();
}

// Wants every tensor of floats, checks that elements come in order and inside of their
// tensor, and sums up what came.
class CheckingSink : public TensorSink {
 public:
  Status OnTensors(const std::vector<TensorInfo>& tensors,
                   std::vector<bool>* wanted) override {
    Require(wanted->size() == tensors.size());
    for (size_t t = 0; t < tensors.size(); ++t) {
      uint64_t n = 1;
      for (const uint64_t dim : tensors[t].shape) n *= dim;
      sizes_.push_back(n);
      const std::string& dtype = tensors[t].dtype;
      (*wanted)[t] = dtype.front() != 'I' && dtype.front() != 'U' && dtype != "BOOL" &&
                     dtype != "F64" && dtype.substr(0, 2) != "F8";
    }
    next_.resize(sizes_.size());
    return OkStatus();
  }

  void OnElements(size_t tensor, uint64_t first, const float* elements,
                  size_t count) override {
    Require(tensor < sizes_.size() && count > 0);
    Require(first == next_[tensor] && count <= sizes_[tensor] - first);
    next_[tensor] += count;
    for (size_t i = 0; i < count; ++i) {
      hash_ = (hash_ ^ std::bit_cast<uint32_t>(elements[i])) * 0x100000001B3u;
    }
  }

  uint64_t hash() const { return hash_; }

 private:
  std::vector<uint64_t> sizes_;
  std::vector<uint64_t> next_;
  uint64_t hash_ = 0;
};

// Feeds a file in pieces of `piece` bytes, each in memory of its own.
template <class Loader>
Status Feed(const std::vector<uint8_t>& file, size_t piece, Loader* loader) {
  for (size_t at = 0; at < file.size(); at += piece) {
    const std::vector<uint8_t> bytes(
        file.begin() + static_cast<std::ptrdiff_t>(at),
        file.begin() + static_cast<std::ptrdiff_t>(std::min(file.size(), at + piece)));
    const Status status = loader->Consume(bytes.data(), bytes.size());
    if (!status.ok()) return status;
  }
  return loader->Finish();
}

// The file as a whole and in pieces must give the same elements, or the same error. The
// first byte of the input is the size of the pieces.
template <class Reader>
void FuzzReader(const uint8_t* data, size_t size) {
  if (size == 0) return;
  const std::vector<uint8_t> file(data + 1, data + size);
  CheckingSink whole_sink;
  Reader whole_reader(&whole_sink);
  const Status whole = Feed(file, std::max<size_t>(file.size(), 1), &whole_reader);
  CheckingSink piece_sink;
  Reader piece_reader(&piece_sink);
  const Status pieces = Feed(file, data[0] % 64 + 1, &piece_reader);
  Require(whole.code() == pieces.code() && whole.message() == pieces.message());
  Require(whole.ok() || !whole.message().empty());
  if (whole.ok()) Require(whole_sink.hash() == piece_sink.hash());
}

}  // namespace kvasm

#endif  // KVASM_TESTS_FUZZ_WEIGHTS_FUZZ_H_
