// model.safetensors.index.json: which file of a sharded checkpoint holds which tensor.

#ifndef KVASM_FORMATS_SAFETENSORS_INDEX_H_
#define KVASM_FORMATS_SAFETENSORS_INDEX_H_

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/status.h"

namespace kvasm {

struct SafetensorsIndex {
  std::unordered_map<std::string, std::string> shard_of;  // By tensor.
  std::vector<std::string> shards;  // Each once, in order of their names.
};

// kInvalidModel where it is malformed, or names a shard by more than a file name: a
// shard lies beside its index.
StatusOr<SafetensorsIndex> ParseSafetensorsIndex(std::string_view json);

}  // namespace kvasm

#endif  // KVASM_FORMATS_SAFETENSORS_INDEX_H_
