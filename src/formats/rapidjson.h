// RapidJSON, set up for a build without exceptions. Include it through this file only.

#ifndef KVASM_FORMATS_RAPIDJSON_H_
#define KVASM_FORMATS_RAPIDJSON_H_

#define RAPIDJSON_HAS_STDSTRING 1
#include <rapidjson/document.h>
#include <rapidjson/error/en.h>
#include <rapidjson/reader.h>

namespace kvasm {

// Iterative: nesting in a hostile file costs heap, not stack. Strings must be UTF-8.
inline constexpr unsigned kJsonFlags =
    rapidjson::kParseIterativeFlag | rapidjson::kParseValidateEncodingFlag;

}  // namespace kvasm

#endif  // KVASM_FORMATS_RAPIDJSON_H_
