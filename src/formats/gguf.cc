#include "formats/gguf.h"

#include <algorithm>
#include <limits>
#include <string>
#include <unordered_set>
#include <utility>

#include "formats/tensor_encoding.h"

namespace kvasm {
namespace {

constexpr uint64_t kDefaultAlignment = 32;
constexpr uint64_t kMaxAlignment = 1 << 16;
constexpr uint64_t kMax = std::numeric_limits<uint64_t>::max();

Status Invalid(const std::string& problem) {
  return Status(StatusCode::kInvalidModel, "GGUF header: " + problem);
}

Status InvalidTensor(const GgufTensor& tensor, const std::string& problem) {
  return Invalid("tensor '" + tensor.name + "': " + problem);
}

StatusOr<uint64_t> ReadAlignment(const GgufMetadata& metadata) {
  const auto found = metadata.find("general.alignment");
  if (found == metadata.end()) return kDefaultAlignment;
  const uint64_t* alignment = std::get_if<uint64_t>(&found->second);
  if (alignment == nullptr || *alignment == 0 || *alignment > kMaxAlignment ||
      (*alignment & (*alignment - 1)) != 0) {
    return Invalid("general.alignment must be an unsigned power of two, " +
                   std::to_string(kMaxAlignment) + " at most" +
                   (alignment == nullptr ? "" : ", not " + std::to_string(*alignment)));
  }
  return *alignment;
}

// `offset` rounded up, or the largest number where that is beyond it.
uint64_t Align(uint64_t offset, uint64_t alignment) {
  if (offset > kMax - (alignment - 1)) return kMax;
  return (offset + alignment - 1) / alignment * alignment;
}

// In bytes.
StatusOr<uint64_t> TensorBytes(const GgufTensor& tensor,
                               const TensorEncoding& encoding) {
  if (tensor.dims[0] % encoding.block_elements != 0) {
    return InvalidTensor(tensor, "its rows of " + std::to_string(tensor.dims[0]) +
                                     " are not whole blocks of " + encoding.name);
  }
  uint64_t bytes = encoding.block_bytes;
  uint64_t blocks = tensor.dims[0] / encoding.block_elements;
  for (size_t d = 0; d < tensor.dims.size(); ++d) {
    const uint64_t factor = d == 0 ? blocks : tensor.dims[d];
    if (factor != 0 && bytes > kMax / factor) {
      return InvalidTensor(tensor, "its shape is too large");
    }
    bytes *= factor;
  }
  return bytes;
}

}  // namespace

Status GgufReader::Consume(const uint8_t* bytes, size_t count) {
  if (status_.ok()) status_ = ConsumeUnchecked(bytes, count);
  return status_;
}

Status GgufReader::ConsumeUnchecked(const uint8_t* bytes, size_t count) {
  if (file_bytes_ == 0) {
    size_t used = 0;
    KVASM_RETURN_IF_ERROR(header_.Consume(bytes, count, &used));
    file_position_ += used;
    if (!header_.done()) return OkStatus();
    KVASM_RETURN_IF_ERROR(EndHeader());
    bytes += used;
    count -= used;
  }
  if (count > file_bytes_ - file_position_) {
    return Status(StatusCode::kInvalidModel,
                  "the file goes on after its last tensor, at byte " +
                      std::to_string(file_bytes_));
  }
  const size_t padding = file_position_ >= data_begin_
                             ? 0
                             : static_cast<size_t>(std::min<uint64_t>(
                                   count, data_begin_ - file_position_));
  stream_.Consume(bytes + padding, count - padding);
  file_position_ += count;
  return OkStatus();
}

Status GgufReader::EndHeader() {
  StatusOr<uint64_t> alignment = ReadAlignment(metadata());
  if (!alignment.ok()) return alignment.status();
  StatusOr<std::vector<TensorStream::Extent>> extents = PlaceTensors(*alignment);
  if (!extents.ok()) return extents.status();
  const uint64_t data_bytes = extents->empty() ? 0 : extents->back().end;
  data_begin_ = Align(header_.bytes(), *alignment);
  if (data_bytes > kMax - data_begin_ - kMaxAlignment) {
    return Invalid("offsets are too large");
  }
  data_end_ = data_begin_ + data_bytes;

  std::vector<TensorInfo> tensors;
  for (const GgufTensor& tensor : header_.tensors()) {
    tensors.push_back({tensor.name,
                       GgufTypeName(tensor.type),
                       {tensor.dims.rbegin(), tensor.dims.rend()}});
  }
  std::vector<bool> wanted(tensors.size(), false);
  KVASM_RETURN_IF_ERROR(sink_->OnTensors(tensors, &wanted));
  for (TensorStream::Extent& extent : *extents) {
    if (!wanted[extent.tensor]) extent.encoding = nullptr;
  }
  stream_.Start(std::move(*extents));
  file_bytes_ = Align(data_end_, *alignment);
  return OkStatus();
}

StatusOr<std::vector<TensorStream::Extent>> GgufReader::PlaceTensors(
    uint64_t alignment) const {
  const std::vector<GgufTensor>& tensors = header_.tensors();
  std::vector<TensorStream::Extent> extents;
  std::unordered_set<std::string> names;
  for (const GgufTensor& tensor : tensors) {
    if (!names.insert(tensor.name).second) {
      return InvalidTensor(tensor, "stands in it twice");
    }
    const TensorEncoding* encoding = GgufEncoding(tensor.type);
    if (encoding == nullptr) {
      const char* name = GgufTypeName(tensor.type);
      return Status(
          StatusCode::kUnsupported,
          "tensor '" + tensor.name + "' is stored as " +
              (name != nullptr ? name : "type " + std::to_string(tensor.type)) +
              "; kvasm reads F32, F16, BF16, Q8_0, Q6_K, Q5_0, Q5_1, Q4_0 and Q4_1");
    }
    if (tensor.offset % alignment != 0) {
      return InvalidTensor(tensor, "its offset " + std::to_string(tensor.offset) +
                                       " is not a multiple of the alignment, " +
                                       std::to_string(alignment));
    }
    StatusOr<uint64_t> bytes = TensorBytes(tensor, *encoding);
    if (!bytes.ok()) return bytes.status();
    if (*bytes > kMax - tensor.offset) {
      return InvalidTensor(tensor, "its offset is too large");
    }
    extents.push_back(
        {extents.size(), tensor.offset, tensor.offset + *bytes, encoding});
  }
  std::sort(extents.begin(), extents.end(), [](const auto& a, const auto& b) {
    return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
  });
  uint64_t end = 0;
  for (const TensorStream::Extent& extent : extents) {
    const GgufTensor& tensor = tensors[extent.tensor];
    if (extent.begin < end) {
      return InvalidTensor(tensor, "its bytes overlap those of another tensor");
    }
    if (extent.begin != Align(end, alignment)) {
      return InvalidTensor(tensor, "the bytes before it, from offset " +
                                       std::to_string(end) + ", belong to no tensor");
    }
    end = extent.end;
  }
  return extents;
}

Status GgufReader::Finish() {
  if (!status_.ok()) return status_;
  if (file_bytes_ != 0 && file_position_ >= data_end_) return OkStatus();
  status_ =
      Status(StatusCode::kTruncated,
             "the GGUF file is truncated: it ends after " +
                 std::to_string(file_position_) + " bytes, " +
                 (file_bytes_ == 0 ? "inside its header"
                                   : "but announces " + std::to_string(data_end_)) +
                 "; download it again");
  return status_;
}

}  // namespace kvasm
