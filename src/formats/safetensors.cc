#include "formats/safetensors.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <string_view>
#include <utility>

#include "base/float16.h"
#include "formats/safetensors_header.h"

namespace kvasm {

static_assert(std::endian::native == std::endian::little,
              "safetensors is little endian, and its numbers are copied as they are");

namespace {

constexpr size_t kLengthBytes = 8;
// The limit of the format's reference implementation.
constexpr uint64_t kMaxHeaderBytes = 100'000'000;

bool IsFloat(std::string_view dtype) {
  return dtype == "F32" || dtype == "F16" || dtype == "BF16";
}

// What people serve in place of weights, told by its first 8 bytes.
Status WrongFile(std::string_view first) {
  if (first == "version ") {
    return Status(
        StatusCode::kInvalidModel,
        "this is a Git LFS pointer, not the weights it points to; run 'git lfs "
        "pull', or download the file itself");
  }
  if (first.front() == '<') {
    return Status(StatusCode::kInvalidModel,
                  "this is an HTML or XML page, not a safetensors file; check the URL");
  }
  if (first.substr(0, 4) == "GGUF") {
    return Status(StatusCode::kUnsupported,
                  "this is a GGUF file, not a safetensors file");
  }
  if (first.substr(0, 2) == "PK") {
    return Status(
        StatusCode::kUnsupported,
        "this is a PyTorch or zip file, not a safetensors file; save the model with "
        "safe_serialization=True");
  }
  return Status(
      StatusCode::kInvalidModel,
      "this is not a safetensors file: its header would be longer than 100 MB");
}

}  // namespace

Status SafetensorsReader::Consume(const uint8_t* bytes, size_t count) {
  if (status_.ok()) status_ = ConsumeUnchecked(bytes, count);
  return status_;
}

Status SafetensorsReader::ConsumeUnchecked(const uint8_t* bytes, size_t count) {
  while (count > 0) {
    size_t used = 0;
    switch (state_) {
      case State::kLength:
        used = std::min(count, kLengthBytes - header_.size());
        header_.append(reinterpret_cast<const char*>(bytes), used);
        if (header_.size() == kLengthBytes) KVASM_RETURN_IF_ERROR(StartHeader());
        break;
      case State::kHeader:
        used = static_cast<size_t>(
            std::min<uint64_t>(count, header_bytes_ - header_.size()));
        header_.append(reinterpret_cast<const char*>(bytes), used);
        break;
      case State::kData:
        if (count > file_bytes_ - file_position_) {
          return Status(StatusCode::kInvalidModel,
                        "the file goes on after its last tensor, at byte " +
                            std::to_string(file_bytes_));
        }
        used = count;
        ConsumeData(bytes, used);
        break;
    }
    bytes += used;
    count -= used;
    file_position_ += used;
    if (state_ == State::kHeader && header_.size() == header_bytes_) {
      KVASM_RETURN_IF_ERROR(ParseHeader());
    }
  }
  return OkStatus();
}

Status SafetensorsReader::StartHeader() {
  std::memcpy(&header_bytes_, header_.data(), kLengthBytes);
  if (header_bytes_ > kMaxHeaderBytes) return WrongFile(header_);
  if (header_bytes_ < 2) {
    return Status(StatusCode::kInvalidModel, "safetensors header: is empty");
  }
  header_.clear();
  state_ = State::kHeader;
  return OkStatus();
}

Status SafetensorsReader::ParseHeader() {
  StatusOr<std::vector<SafetensorsEntry>> entries = ParseSafetensorsHeader(header_);
  if (!entries.ok()) return entries.status();
  std::string().swap(header_);
  const uint64_t data_bytes = entries->empty() ? 0 : entries->back().end;
  if (data_bytes > std::numeric_limits<uint64_t>::max() - file_position_) {
    return Status(StatusCode::kInvalidModel,
                  "safetensors header: offsets are too large");
  }
  for (SafetensorsEntry& entry : *entries) {
    extents_.push_back(
        {tensors_.size(), entry.begin, entry.end, entry.element_bytes, false});
    tensors_.push_back(std::move(entry.info));
  }
  std::vector<bool> wanted(tensors_.size(), false);
  KVASM_RETURN_IF_ERROR(sink_->OnTensors(tensors_, &wanted));
  for (Extent& extent : extents_) {
    extent.wanted = wanted[extent.tensor];
    const TensorInfo& tensor = tensors_[extent.tensor];
    if (extent.wanted && !IsFloat(tensor.dtype)) {
      return Status(StatusCode::kUnsupported, "tensor '" + tensor.name +
                                                  "' has the dtype " + tensor.dtype +
                                                  "; kvasm reads F32, F16 and BF16");
    }
  }
  file_bytes_ = file_position_ + data_bytes;
  state_ = State::kData;
  SkipFinishedExtents();
  return OkStatus();
}

void SafetensorsReader::SkipFinishedExtents() {
  while (extent_ < extents_.size() && extents_[extent_].end <= data_position_) {
    ++extent_;
  }
}

void SafetensorsReader::ConsumeData(const uint8_t* bytes, size_t count) {
  while (count > 0) {
    const Extent& extent = extents_[extent_];
    const size_t used =
        static_cast<size_t>(std::min<uint64_t>(count, extent.end - data_position_));
    if (extent.wanted) {
      const size_t element_bytes = extent.element_bytes;
      size_t done = 0;
      if (partial_bytes_ > 0) {
        done = std::min(used, element_bytes - partial_bytes_);
        std::memcpy(partial_ + partial_bytes_, bytes, done);
        partial_bytes_ += done;
        if (partial_bytes_ == element_bytes) {
          const uint64_t element =
              (data_position_ + done - extent.begin) / element_bytes - 1;
          Decode(extent, element, partial_, 1);
          partial_bytes_ = 0;
        }
      }
      const size_t whole = (used - done) / element_bytes;
      if (whole > 0) {
        Decode(extent, (data_position_ + done - extent.begin) / element_bytes,
               bytes + done, whole);
        done += whole * element_bytes;
      }
      if (done < used) {
        partial_bytes_ = used - done;
        std::memcpy(partial_, bytes + done, partial_bytes_);
      }
    }
    bytes += used;
    count -= used;
    data_position_ += used;
    SkipFinishedExtents();
  }
}

void SafetensorsReader::Decode(const Extent& extent, uint64_t first,
                               const uint8_t* bytes, size_t count) {
  constexpr size_t kChunk = 2048;
  float elements[kChunk];
  const std::string& dtype = tensors_[extent.tensor].dtype;
  const bool is_f32 = dtype == "F32";
  const bool is_f16 = dtype == "F16";
  while (count > 0) {
    const size_t n = std::min(count, kChunk);
    // Copied, never read in place: the bytes of a tensor need not be aligned.
    if (is_f32) {
      std::memcpy(elements, bytes, n * sizeof(float));
    } else {
      for (size_t i = 0; i < n; ++i) {
        uint16_t bits;
        std::memcpy(&bits, bytes + i * sizeof(bits), sizeof(bits));
        elements[i] = is_f16 ? Float16ToFloat(bits) : BFloat16ToFloat(bits);
      }
    }
    sink_->OnElements(extent.tensor, first, elements, n);
    first += n;
    bytes += n * extent.element_bytes;
    count -= n;
  }
}

Status SafetensorsReader::Finish() {
  if (!status_.ok()) return status_;
  if (state_ == State::kData && file_position_ == file_bytes_) return OkStatus();
  const std::string expected =
      state_ == State::kData
          ? std::to_string(file_bytes_) + " bytes"
          : (state_ == State::kHeader
                 ? "a header of " + std::to_string(header_bytes_) + " bytes"
                 : std::string("the 8 bytes of its header's length"));
  status_ = Status(StatusCode::kTruncated,
                   "the safetensors file is truncated: it ends after " +
                       std::to_string(file_position_) + " bytes, but announces " +
                       expected + "; download it again");
  return status_;
}

}  // namespace kvasm
