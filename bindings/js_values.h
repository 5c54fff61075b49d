// Values of the core as JavaScript has them.

#ifndef KVASM_BINDINGS_JS_VALUES_H_
#define KVASM_BINDINGS_JS_VALUES_H_

#include <emscripten/val.h>

#include <cstddef>
#include <string>
#include <vector>

#include "base/status.h"

namespace kvasm {

// Sizes are doubles in JavaScript: exact up to 2^53, beyond what a 32-bit memory holds.
inline double ToJs(size_t n) { return static_cast<double>(n); }

struct JsStatus {
  std::string code;
  std::string message;
};

inline JsStatus ToJs(const Status& status) {
  return {StatusCodeName(status.code()), status.message()};
}

// A typed array over the values themselves.
template <typename T>
emscripten::val View(const std::vector<T>& values) {
  return emscripten::val(emscripten::typed_memory_view(values.size(), values.data()));
}

}  // namespace kvasm

#endif  // KVASM_BINDINGS_JS_VALUES_H_
