#include "formats/safetensors_index.h"

#include <set>

#include "formats/rapidjson.h"

namespace kvasm {
namespace {

Status Invalid(const std::string& problem) {
  return Status(StatusCode::kInvalidModel, "model.safetensors.index.json: " + problem);
}

Status InvalidTensor(const std::string& name, const std::string& problem) {
  return Invalid("tensor '" + name + "'" + problem);
}

bool IsFileName(std::string_view name) {
  return !name.empty() && name.front() != '.' &&
         name.find_first_of(std::string_view("/\\\0", 3)) == std::string_view::npos;
}

}  // namespace

StatusOr<SafetensorsIndex> ParseSafetensorsIndex(std::string_view json) {
  rapidjson::Document document;
  document.Parse<kJsonFlags>(json.data(), json.size());
  if (document.HasParseError()) {
    return Invalid(std::string("not valid JSON: ") +
                   rapidjson::GetParseError_En(document.GetParseError()) +
                   " (at byte " + std::to_string(document.GetErrorOffset()) + ")");
  }
  if (!document.IsObject()) return Invalid("must be a JSON object");
  const auto map = document.FindMember("weight_map");
  if (map == document.MemberEnd() || !map->value.IsObject()) {
    return Invalid("'weight_map' must be an object");
  }
  SafetensorsIndex index;
  std::set<std::string> shards;
  for (const auto& member : map->value.GetObject()) {
    const std::string name(member.name.GetString(), member.name.GetStringLength());
    if (!member.value.IsString()) {
      return InvalidTensor(name, ": its file must be a string");
    }
    const std::string shard(member.value.GetString(), member.value.GetStringLength());
    if (!IsFileName(shard)) {
      return InvalidTensor(name,
                           " is said to be in '" + shard +
                               "', which is not the name of a file beside the index");
    }
    shards.insert(shard);
    const bool is_new = index.shard_of.emplace(name, shard).second;
    if (!is_new) return InvalidTensor(name, " stands in it twice");
  }
  if (shards.empty()) return Invalid("'weight_map' is empty");
  index.shards.assign(shards.begin(), shards.end());
  return index;
}

}  // namespace kvasm
