#include "formats/safetensors_header.h"

#include <algorithm>
#include <limits>
#include <unordered_set>
#include <utility>

#include "formats/rapidjson.h"

namespace kvasm {
namespace {

Status Invalid(const std::string& problem) {
  return Status(StatusCode::kInvalidModel, "safetensors header: " + problem);
}

Status InvalidTensor(const std::string& name, const std::string& problem) {
  return Invalid("tensor '" + name + "': " + problem);
}

// 0 for an unknown dtype.
size_t ElementBytes(std::string_view dtype) {
  if (dtype == "BOOL" || dtype == "U8" || dtype == "I8" || dtype == "F8_E4M3" ||
      dtype == "F8_E5M2") {
    return 1;
  }
  if (dtype == "F16" || dtype == "BF16" || dtype == "I16" || dtype == "U16") return 2;
  if (dtype == "F32" || dtype == "I32" || dtype == "U32") return 4;
  if (dtype == "F64" || dtype == "I64" || dtype == "U64") return 8;
  return 0;
}

Status ParseDtype(const rapidjson::Value& value, SafetensorsEntry* entry) {
  const auto member = value.FindMember("dtype");
  if (member == value.MemberEnd() || !member->value.IsString()) {
    return InvalidTensor(entry->info.name, "'dtype' must be a string");
  }
  entry->info.dtype = member->value.GetString();
  entry->element_bytes = ElementBytes(entry->info.dtype);
  if (entry->element_bytes == 0) {
    return Status(StatusCode::kUnsupported, "safetensors header: tensor '" +
                                                entry->info.name + "' has the dtype '" +
                                                entry->info.dtype +
                                                "', which kvasm does not know");
  }
  return OkStatus();
}

Status ParseShape(const rapidjson::Value& value, SafetensorsEntry* entry) {
  const auto member = value.FindMember("shape");
  if (member == value.MemberEnd() || !member->value.IsArray()) {
    return InvalidTensor(entry->info.name, "'shape' must be an array");
  }
  for (const rapidjson::Value& dim : member->value.GetArray()) {
    if (!dim.IsUint64()) {
      return InvalidTensor(entry->info.name, "'shape' must hold non-negative integers");
    }
    entry->info.shape.push_back(dim.GetUint64());
  }
  return OkStatus();
}

Status ParseOffsets(const rapidjson::Value& value, SafetensorsEntry* entry) {
  const auto member = value.FindMember("data_offsets");
  if (member == value.MemberEnd() || !member->value.IsArray() ||
      member->value.Size() != 2 || !member->value[0].IsUint64() ||
      !member->value[1].IsUint64()) {
    return InvalidTensor(entry->info.name,
                         "'data_offsets' must be two non-negative integers");
  }
  entry->begin = member->value[0].GetUint64();
  entry->end = member->value[1].GetUint64();
  if (entry->begin > entry->end) {
    return InvalidTensor(entry->info.name, "'data_offsets' end before they begin");
  }
  return OkStatus();
}

Status CheckSpan(const SafetensorsEntry& entry) {
  uint64_t bytes = entry.element_bytes;
  for (const uint64_t dim : entry.info.shape) {
    if (dim != 0 && bytes > std::numeric_limits<uint64_t>::max() / dim) {
      return InvalidTensor(entry.info.name, "'shape' is too large");
    }
    bytes *= dim;
  }
  if (bytes != entry.end - entry.begin) {
    return InvalidTensor(entry.info.name, "its dtype and shape need " +
                                              std::to_string(bytes) +
                                              " bytes, but 'data_offsets' span " +
                                              std::to_string(entry.end - entry.begin));
  }
  return OkStatus();
}

Status CheckCoverage(const std::vector<SafetensorsEntry>& entries) {
  uint64_t position = 0;
  for (const SafetensorsEntry& entry : entries) {
    if (entry.begin < position) {
      return InvalidTensor(entry.info.name,
                           "its bytes overlap those of another tensor");
    }
    if (entry.begin > position) {
      return InvalidTensor(entry.info.name, "the bytes before it, from offset " +
                                                std::to_string(position) +
                                                ", belong to no tensor");
    }
    position = entry.end;
  }
  return OkStatus();
}

}  // namespace

StatusOr<std::vector<SafetensorsEntry>> ParseSafetensorsHeader(std::string_view json) {
  rapidjson::Document document;
  document.Parse<kJsonFlags>(json.data(), json.size());
  if (document.HasParseError()) {
    return Invalid(std::string("not valid JSON: ") +
                   rapidjson::GetParseError_En(document.GetParseError()) +
                   " (at byte " + std::to_string(document.GetErrorOffset()) + ")");
  }
  if (!document.IsObject()) return Invalid("must be a JSON object");
  std::vector<SafetensorsEntry> entries;
  std::unordered_set<std::string> names;
  entries.reserve(document.MemberCount());
  for (const auto& member : document.GetObject()) {
    SafetensorsEntry entry;
    entry.info.name.assign(member.name.GetString(), member.name.GetStringLength());
    if (!names.insert(entry.info.name).second) {
      return InvalidTensor(entry.info.name, "stands in the header twice");
    }
    if (entry.info.name == "__metadata__") continue;
    if (!member.value.IsObject()) {
      return InvalidTensor(entry.info.name, "must be a JSON object");
    }
    KVASM_RETURN_IF_ERROR(ParseDtype(member.value, &entry));
    KVASM_RETURN_IF_ERROR(ParseShape(member.value, &entry));
    KVASM_RETURN_IF_ERROR(ParseOffsets(member.value, &entry));
    KVASM_RETURN_IF_ERROR(CheckSpan(entry));
    entries.push_back(std::move(entry));
  }
  std::sort(entries.begin(), entries.end(),
            [](const SafetensorsEntry& a, const SafetensorsEntry& b) {
              return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
            });
  KVASM_RETURN_IF_ERROR(CheckCoverage(entries));
  return entries;
}

}  // namespace kvasm
