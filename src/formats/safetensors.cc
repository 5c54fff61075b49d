#include "formats/safetensors.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <string_view>
#include <utility>
#include <vector>

#include "formats/safetensors_header.h"

namespace kvasm {

static_assert(std::endian::native == std::endian::little,
              "the length of the header is little endian, and copied as it is");

namespace {

constexpr size_t kLengthBytes = 8;
// The limit of the format's reference implementation.
constexpr uint64_t kMaxHeaderBytes = 100'000'000;
constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

// What people serve in place of weights, told by its first 8 bytes.
Status WrongFile(std::string_view first) {
  if (first == "version ") {
    return Status(
        StatusCode::kInvalidModel,
        "this is a Git LFS pointer, not the weights it points to; run 'git lfs "
        "pull', or download the file itself");
  }
  std::string_view text = first;
  if (text.substr(0, kByteOrderMark.size()) == kByteOrderMark) {
    text.remove_prefix(kByteOrderMark.size());
  }
  text.remove_prefix(std::min(text.find_first_not_of(" \t\r\n"), text.size()));
  if (!text.empty() && text.front() == '<') {
    return Status(StatusCode::kInvalidModel,
                  "this is an HTML or XML page, not a file of weights; check the URL");
  }
  if (!text.empty() && text.front() == '{') {
    return Status(
        StatusCode::kInvalidModel,
        "this is a JSON text, perhaps a server's error, not a file of weights; check "
        "the URL");
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
      "this is neither a safetensors nor a GGUF file: as safetensors, its header would "
      "be longer than 100 MB");
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
        stream_.Consume(bytes, used);
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
  std::vector<TensorInfo> tensors;
  std::vector<TensorStream::Extent> extents;
  for (SafetensorsEntry& entry : *entries) {
    extents.push_back({tensors.size(), entry.begin, entry.end, nullptr});
    tensors.push_back(std::move(entry.info));
  }
  std::vector<bool> wanted(tensors.size(), false);
  KVASM_RETURN_IF_ERROR(sink_->OnTensors(tensors, &wanted));
  for (TensorStream::Extent& extent : extents) {
    if (!wanted[extent.tensor]) continue;
    const TensorInfo& tensor = tensors[extent.tensor];
    extent.encoding = SafetensorsEncoding(tensor.dtype);
    if (extent.encoding == nullptr) {
      return Status(StatusCode::kUnsupported, "tensor '" + tensor.name +
                                                  "' has the dtype " + tensor.dtype +
                                                  "; kvasm reads F32, F16 and BF16");
    }
  }
  stream_.Start(std::move(extents));
  file_bytes_ = file_position_ + data_bytes;
  state_ = State::kData;
  return OkStatus();
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
