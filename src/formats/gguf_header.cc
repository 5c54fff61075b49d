#include "formats/gguf_header.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <string_view>
#include <utility>

namespace kvasm {

static_assert(std::endian::native == std::endian::little,
              "GGUF is little endian, and its numbers are copied as they are");

namespace {

constexpr uint64_t kMaxHeaderBytes = 100'000'000;
// Far above what real files have; they bound what a small file can make us hold.
constexpr uint64_t kMaxPairs = 1 << 16;
constexpr uint64_t kMaxTensors = 1 << 16;
constexpr uint64_t kMaxNameBytes = (1 << 16) - 1;
constexpr uint64_t kMaxTextBytes = 16 << 20;
constexpr uint32_t kMaxDims = 4;

enum Type : uint32_t {
  kUint8,
  kInt8,
  kUint16,
  kInt16,
  kUint32,
  kInt32,
  kFloat32,
  kBool,
  kText,
  kArray,
  kUint64,
  kInt64,
  kFloat64,
};

// Of a number; 0 for everything else.
size_t NumberBytes(uint32_t type) {
  switch (type) {
    case kUint8:
    case kInt8:
    case kBool:
      return 1;
    case kUint16:
    case kInt16:
      return 2;
    case kUint32:
    case kInt32:
    case kFloat32:
      return 4;
    case kUint64:
    case kInt64:
    case kFloat64:
      return 8;
    default:
      return 0;
  }
}

constexpr std::string_view kTokens = "tokenizer.ggml.tokens";
constexpr std::string_view kMerges = "tokenizer.ggml.merges";
constexpr std::string_view kTokenTypes = "tokenizer.ggml.token_type";

Status Invalid(const std::string& problem) {
  return Status(StatusCode::kInvalidModel, "GGUF header: " + problem);
}

Status Unsupported(const std::string& problem) {
  return Status(StatusCode::kUnsupported, "GGUF header: " + problem);
}

}  // namespace

GgufHeaderParser::GgufHeaderParser() { Expect(State::kStart, 24); }

void GgufHeaderParser::Expect(State state, size_t size) {
  state_ = state;
  item_size_ = size;
  item_.clear();
}

// The item at hand is a length, which the text follows.
Status GgufHeaderParser::ExpectText(State state, uint64_t limit) {
  const uint64_t length = ItemUint(0, 8);
  if (length > limit) {
    return Invalid("a text of " + std::to_string(length) +
                   " bytes is too long, at byte " + std::to_string(bytes_ - 8));
  }
  Expect(state, static_cast<size_t>(length));
  return OkStatus();
}

uint64_t GgufHeaderParser::ItemUint(size_t offset, size_t size) const {
  uint64_t value = 0;
  std::memcpy(&value, item_.data() + offset, size);
  return value;
}

Status GgufHeaderParser::InvalidKey(const std::string& problem) const {
  return Invalid("key '" + key_ + "': " + problem);
}

Status GgufHeaderParser::Consume(const uint8_t* bytes, size_t count, size_t* used) {
  size_t at = 0;
  while (!done()) {
    const bool skips = skip_ > 0;
    const uint64_t missing = skips ? skip_ : item_size_ - item_.size();
    const size_t n = static_cast<size_t>(std::min<uint64_t>(count - at, missing));
    if (skips) {
      skip_ -= n;
    } else {
      item_.append(reinterpret_cast<const char*>(bytes) + at, n);
    }
    at += n;
    bytes_ += n;
    if (bytes_ > kMaxHeaderBytes) return Invalid("is longer than 100 MB");
    if (n < missing) break;
    if (!skips) KVASM_RETURN_IF_ERROR(HandleItem());
  }
  *used += at;
  return OkStatus();
}

Status GgufHeaderParser::HandleItem() {
  switch (state_) {
    case State::kStart:
      return HandleStart();
    case State::kKeyLength:
      return ExpectText(State::kKey, kMaxNameBytes);
    case State::kKey:
      return HandleKey();
    case State::kValueType:
      return HandleValueType();
    case State::kNumber:
      return HandleNumber();
    case State::kStringLength:
      return ExpectText(State::kString, kMaxTextBytes);
    case State::kString:
      EndValue(std::move(item_));
      return OkStatus();
    case State::kArrayHead:
      return HandleArrayHead();
    case State::kArrayNumber:
      if (auto* numbers = std::get_if<std::vector<int32_t>>(&array_)) {
        numbers->push_back(
            std::bit_cast<int32_t>(static_cast<uint32_t>(ItemUint(0, 4))));
      }
      NextArrayElement();
      return OkStatus();
    case State::kArrayStringLength:
      return ExpectText(State::kArrayString, kMaxTextBytes);
    case State::kArrayString:
      if (auto* strings = std::get_if<GgufStrings>(&array_)) {
        strings->bytes += item_;
        strings->ends.push_back(static_cast<uint32_t>(strings->bytes.size()));
      }
      NextArrayElement();
      return OkStatus();
    case State::kTensorNameLength:
      return ExpectText(State::kTensorName, kMaxNameBytes);
    case State::kTensorName:
      HandleTensorName();
      return OkStatus();
    case State::kTensorDimCount:
      return HandleTensorDimCount();
    case State::kTensorDims:
      for (size_t i = 0; i < item_size_; i += 8) {
        tensors_.back().dims.push_back(ItemUint(i, 8));
      }
      Expect(State::kTensorTypeAndOffset, 12);
      return OkStatus();
    case State::kTensorTypeAndOffset:
      tensors_.back().type = static_cast<uint32_t>(ItemUint(0, 4));
      tensors_.back().offset = ItemUint(4, 8);
      NextTensor();
      return OkStatus();
    case State::kDone:
      break;
  }
  return OkStatus();
}

Status GgufHeaderParser::HandleStart() {
  if (item_.compare(0, 4, "GGUF") != 0) {
    return Status(StatusCode::kInvalidModel,
                  "this is not a GGUF file: it does not begin with the letters GGUF");
  }
  const uint32_t version = static_cast<uint32_t>(ItemUint(4, 4));
  if ((version & 0xFFFF) == 0 && version != 0) {
    return Unsupported("the file is big endian; convert the model for little endian");
  }
  if (version != 2 && version != 3) {
    return Unsupported("the file has the version " + std::to_string(version) +
                       "; kvasm reads 2 and 3");
  }
  tensors_left_ = ItemUint(8, 8);
  pairs_left_ = ItemUint(16, 8);
  if (tensors_left_ > kMaxTensors) {
    return Invalid("claims " + std::to_string(tensors_left_) + " tensors, more than " +
                   std::to_string(kMaxTensors));
  }
  if (pairs_left_ > kMaxPairs) {
    return Invalid("claims " + std::to_string(pairs_left_) + " keys, more than " +
                   std::to_string(kMaxPairs));
  }
  NextPair();
  return OkStatus();
}

void GgufHeaderParser::NextPair() {
  if (pairs_left_ == 0) {
    NextTensor();
    return;
  }
  --pairs_left_;
  Expect(State::kKeyLength, 8);
}

Status GgufHeaderParser::HandleKey() {
  key_ = item_;
  if (metadata_.count(key_) > 0) return InvalidKey("stands in it twice");
  Expect(State::kValueType, 4);
  return OkStatus();
}

Status GgufHeaderParser::HandleValueType() {
  type_ = static_cast<uint32_t>(ItemUint(0, 4));
  if (type_ == kText) {
    Expect(State::kStringLength, 8);
  } else if (type_ == kArray) {
    Expect(State::kArrayHead, 12);
  } else if (NumberBytes(type_) > 0) {
    Expect(State::kNumber, NumberBytes(type_));
  } else {
    return InvalidKey("has a value of the type " + std::to_string(type_) +
                      ", which GGUF does not have");
  }
  return OkStatus();
}

Status GgufHeaderParser::HandleNumber() {
  const uint64_t bits = ItemUint(0, item_size_);
  switch (type_) {
    case kInt8:
      EndValue(int64_t{static_cast<int8_t>(bits)});
      break;
    case kInt16:
      EndValue(int64_t{static_cast<int16_t>(bits)});
      break;
    case kInt32:
      EndValue(int64_t{static_cast<int32_t>(bits)});
      break;
    case kInt64:
      EndValue(static_cast<int64_t>(bits));
      break;
    case kFloat32:
      EndValue(double{std::bit_cast<float>(static_cast<uint32_t>(bits))});
      break;
    case kFloat64:
      EndValue(std::bit_cast<double>(bits));
      break;
    case kBool:
      if (bits > 1) return InvalidKey("is a bool that is neither 0 nor 1");
      EndValue(bits == 1);
      break;
    default:
      EndValue(bits);
  }
  return OkStatus();
}

void GgufHeaderParser::EndValue(GgufValue value) {
  metadata_.emplace(std::move(key_), std::move(value));
  NextPair();
}

Status GgufHeaderParser::HandleArrayHead() {
  type_ = static_cast<uint32_t>(ItemUint(0, 4));
  elements_left_ = ItemUint(4, 8);
  if (type_ == kArray) {
    return Unsupported("key '" + key_ + "': kvasm reads no arrays of arrays");
  }
  const size_t number_bytes = NumberBytes(type_);
  if (number_bytes == 0 && type_ != kText) {
    return InvalidKey("has elements of the type " + std::to_string(type_) +
                      ", which GGUF does not have");
  }
  // The least that an element takes: a number, or the length of a text.
  const uint64_t element_bytes = number_bytes > 0 ? number_bytes : 8;
  if (elements_left_ > kMaxHeaderBytes / element_bytes) {
    return InvalidKey("claims an array of " + std::to_string(elements_left_) +
                      " elements, more than a header has room for");
  }
  array_ = GgufSkipped();
  if (type_ == kText && (key_ == kTokens || key_ == kMerges)) {
    array_ = GgufStrings();
  } else if ((type_ == kInt32 || type_ == kUint32) && key_ == kTokenTypes) {
    array_ = std::vector<int32_t>();
  } else if (type_ != kText) {
    skip_ = elements_left_ * element_bytes;
    elements_left_ = 0;
  }
  NextArrayElement();
  return OkStatus();
}

void GgufHeaderParser::NextArrayElement() {
  if (elements_left_ == 0) {
    EndValue(std::move(array_));
    return;
  }
  --elements_left_;
  if (type_ == kText) {
    Expect(State::kArrayStringLength, 8);
  } else {
    Expect(State::kArrayNumber, NumberBytes(type_));
  }
}

void GgufHeaderParser::NextTensor() {
  if (tensors_left_ == 0) {
    Expect(State::kDone, 0);
    return;
  }
  --tensors_left_;
  Expect(State::kTensorNameLength, 8);
}

void GgufHeaderParser::HandleTensorName() {
  tensors_.emplace_back();
  tensors_.back().name = std::move(item_);
  Expect(State::kTensorDimCount, 4);
}

Status GgufHeaderParser::HandleTensorDimCount() {
  const uint32_t dims = static_cast<uint32_t>(ItemUint(0, 4));
  if (dims < 1 || dims > kMaxDims) {
    return Invalid("tensor '" + tensors_.back().name + "' has " + std::to_string(dims) +
                   " dimensions; GGUF has 1 to " + std::to_string(kMaxDims));
  }
  Expect(State::kTensorDims, size_t{8} * dims);
  return OkStatus();
}

}  // namespace kvasm
