#include "formats/tensor_stream.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace kvasm {

void TensorStream::Start(std::vector<Extent> extents) {
  extents_ = std::move(extents);
  SkipFinishedExtents();
}

void TensorStream::SkipFinishedExtents() {
  while (extent_ < extents_.size() && extents_[extent_].end <= position_) ++extent_;
}

void TensorStream::Consume(const uint8_t* bytes, size_t count) {
  while (count > 0) {
    uint64_t left = count;
    bool is_gap = true;
    if (extent_ < extents_.size()) {
      const Extent& extent = extents_[extent_];
      is_gap = position_ < extent.begin;
      left = (is_gap ? extent.begin : extent.end) - position_;
    }
    const size_t used = static_cast<size_t>(std::min<uint64_t>(count, left));
    if (!is_gap && extents_[extent_].encoding != nullptr) {
      ConsumeExtent(extents_[extent_], bytes, used);
    }
    bytes += used;
    count -= used;
    position_ += used;
    SkipFinishedExtents();
  }
}

void TensorStream::ConsumeExtent(const Extent& extent, const uint8_t* bytes,
                                 size_t count) {
  const size_t block_bytes = extent.encoding->block_bytes;
  uint64_t block = (position_ - extent.begin) / block_bytes;
  if (partial_bytes_ > 0) {
    const size_t taken = std::min(count, block_bytes - partial_bytes_);
    std::memcpy(partial_ + partial_bytes_, bytes, taken);
    partial_bytes_ += taken;
    bytes += taken;
    count -= taken;
    if (partial_bytes_ < block_bytes) return;
    Decode(extent, block++, partial_, 1);
    partial_bytes_ = 0;
  }
  const size_t whole = count / block_bytes;
  Decode(extent, block, bytes, whole);
  partial_bytes_ = count - whole * block_bytes;
  std::memcpy(partial_, bytes + whole * block_bytes, partial_bytes_);
}

void TensorStream::Decode(const Extent& extent, uint64_t block, const uint8_t* bytes,
                          size_t blocks) {
  constexpr size_t kChunk = 2048;
  static_assert(kChunk % kMaxBlockElements == 0);
  float elements[kChunk];
  const TensorEncoding& encoding = *extent.encoding;
  while (blocks > 0) {
    const size_t n = std::min(blocks, kChunk / encoding.block_elements);
    encoding.decode(bytes, n, elements);
    sink_->OnElements(extent.tensor, block * encoding.block_elements, elements,
                      n * encoding.block_elements);
    block += n;
    bytes += n * encoding.block_bytes;
    blocks -= n;
  }
}

}  // namespace kvasm
