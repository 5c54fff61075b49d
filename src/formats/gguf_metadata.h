// The key-value pairs in front of a GGUF file's tensors.

#ifndef KVASM_FORMATS_GGUF_METADATA_H_
#define KVASM_FORMATS_GGUF_METADATA_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace kvasm {

// Texts end to end: an object for each of 50,257 tokens would take ten times the
// memory.
struct GgufStrings {
  std::string bytes;
  std::vector<uint32_t> ends;  // Where each ends in `bytes`.

  size_t size() const { return ends.size(); }
};

// An array that nobody asked for.
struct GgufSkipped {};

// Unsigned integers are uint64_t, signed ones int64_t, floats double, whatever their
// size in the file.
using GgufValue = std::variant<uint64_t, int64_t, double, bool, std::string,
                               GgufStrings, std::vector<int32_t>, GgufSkipped>;

using GgufMetadata = std::map<std::string, GgufValue, std::less<>>;

// The value of a key, if it is there with that type; else null.
template <typename T>
const T* FindGguf(const GgufMetadata& metadata, std::string_view key) {
  const auto found = metadata.find(key);
  return found == metadata.end() ? nullptr : std::get_if<T>(&found->second);
}

}  // namespace kvasm

#endif  // KVASM_FORMATS_GGUF_METADATA_H_
