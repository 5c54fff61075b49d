#include "formats/safetensors_index.h"

#include <set>
#include <utility>

#include "formats/rapidjson.h"

namespace kvasm {
namespace {

Status Invalid(const std::string& problem) {
  return Status(StatusCode::kInvalidModel, "model.safetensors.index.json: " + problem);
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
    std::string name(member.name.GetString(), member.name.GetStringLength());
    const std::string tensor = "tensor '" + name + "'";
    if (!member.value.IsString()) {
      return Invalid(tensor + ": its file must be a string");
    }
    std::string shard(member.value.GetString(), member.value.GetStringLength());
    if (!IsFileName(shard)) {
      return Invalid(tensor + " is said to be in '" + shard +
                     "', which is not the name of a file beside the index");
    }
    shards.insert(shard);
    const bool is_new = index.shard_of.emplace(std::move(name), shard).second;
    if (!is_new) return Invalid(tensor + " stands in it twice");
  }
  if (shards.empty()) return Invalid("'weight_map' is empty");
  index.shards.assign(shards.begin(), shards.end());
  return index;
}

}  // namespace kvasm
